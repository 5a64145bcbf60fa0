<?php
// app/View/Components/PictorImage.php. In AppServiceProvider::register, with Pictor.php loaded by Composer:
// $this->app->singleton(\Pictor::class, fn() =>
//     new \Pictor(config('services.pictor.base'), ['main', config('services.pictor.secret')]));
//
// <x-pictor-image :src="$post->cover_url" :width="800" :widths="[400, 800, 1600]" alt="A hill" />
// <x-pictor-image :src="$user->avatar_url" :width="96" :height="96" :alt="$user->name" />
namespace App\View\Components;

use Illuminate\View\Component;
use Pictor;

class PictorImage extends Component
{
    public array $image;

    // With widths, the image follows the layout, and the browser picks one; without, it has a fixed size, in points.
    public function __construct(Pictor $pictor, string $src, int $width, ?int $height = null,
        ?array $widths = null, string $sizes = '100vw')
    {
        $url = fn(int $side, ?float $scale = null) => $pictor->url($src, width: $side,
            height: $height ? $side * $height / $width : null, scale: $scale, fit: $height ? 'cover' : null);
        $candidates = $widths
            ? array_map(fn($side) => $url($side) . " {$side}w", $widths)
            : array_map(fn($scale) => $url($width, $scale) . " {$scale}x", [1, 2, 3]);
        $this->image = array_filter(['src' => $url($width), 'srcset' => implode(', ', $candidates),
            'sizes' => $widths ? $sizes : null, 'width' => $width, 'height' => $height, 'loading' => 'lazy']);
    }

    public function render()
    {
        return '<img {{ $attributes->merge($image) }}>';
    }
}
