<?php
// Blade compiles and renders the component, as in an application.
error_reporting(E_ALL & ~E_DEPRECATED);
require 'Pictor.php';
require '/usr/share/php/Illuminate/View/autoload.php';
require 'recipe.php';

$container = Illuminate\Container\Container::getInstance();
$files = new Illuminate\Filesystem\Filesystem();
$compiler = new Illuminate\View\Compilers\BladeCompiler($files, __DIR__);
$engines = new Illuminate\View\Engines\EngineResolver();
$engines->register('blade', fn() => new Illuminate\View\Engines\CompilerEngine($compiler, $files));
$finder = new Illuminate\View\FileViewFinder($files, [__DIR__]);
$factory = new Illuminate\View\Factory($engines, $finder, new Illuminate\Events\Dispatcher($container));
$factory->setContainer($container);
$container->instance('view', $factory);
$container->instance('blade.compiler', $compiler);
$container->instance('config', new Illuminate\Support\Fluent(['view.compiled' => __DIR__]));
$container->alias('view', Illuminate\Contracts\View\Factory::class);
Illuminate\Support\Facades\Facade::setFacadeApplication($container);
$container->instance(Pictor::class, new Pictor('https://images.example.com', ['main', getenv('PICTOR_SECRET')]));
$compiler->component('pictor-image', App\View\Components\PictorImage::class);

file_put_contents('page.blade.php', <<<'BLADE'
<x-pictor-image :src="$source" :width="800" :widths="[400, 800, 1600]" alt="A hill & more" />
<x-pictor-image :src="$source" :width="320" :height="180" :widths="[320, 640]" sizes="50vw" alt="" />
<x-pictor-image :src="$source" :width="96" :height="96" alt="" />
BLADE);
echo $factory->make('page', ['source' => getenv('ORIGIN') . '/hills.jpg'])->render();
