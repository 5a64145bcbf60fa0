<?php
require 'Pictor.php';

$names = ['w' => 'width', 'h' => 'height', 'exp' => 'expires'];
while (($line = fgets(STDIN)) !== false) {
    [$base, $key, $secret, $path, $typed, $source] = $fields = explode("\t", rtrim($line, "\n"));
    $options = [];
    foreach (array_slice($fields, 6) as $item) {
        [$name, $value] = explode('=', $item, 2);
        if ($typed) {
            $value = in_array($name, ['quality', 'exp']) ? (int) $value : $value;
            $options[$names[$name] ?? $name] = in_array($name, ['w', 'h', 'scale']) ? (float) $value : $value;
        } else {
            $options[$name] = $value;
        }
    }
    $pictor = new Pictor($base, $key === '' ? null : [$key, $secret]);
    echo $pictor->url(...['source' => $source, 'path' => $path] + ($typed ? $options : ['more' => $options])), "\n";
}
