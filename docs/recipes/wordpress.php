<?php
/**
 * Plugin Name: Pictor
 * Description: Serves the images of the media library through Pictor, by signed URLs.
 * Requires at least: 6.0
 * Requires PHP: 8.0
 */
// wp-content/plugins/pictor/pictor.php, beside Pictor.php. In wp-config.php:
// define('PICTOR_BASE', 'https://images.example.com'); define('PICTOR_KEY', 'main:SECRET');
require_once __DIR__ . '/Pictor.php';

// WordPress names its sub-sizes a-300x200.jpg. Pictor cuts them from the whole image in the same way.
function pictor_url(string $url, int $id, ?int $width = null): string
{
    $whole = $id > 0 ? wp_get_attachment_url($id) : false;
    if (!$whole || dirname($url) !== dirname($whole)) {
        return $url;
    }
    $pictor = new Pictor(PICTOR_BASE, explode(':', PICTOR_KEY, 2));
    return $url !== $whole && preg_match('/-(\d+)x(\d+)\.\w+\z/', $url, $side)
        ? $pictor->url($whole, width: (int) $side[1], height: (int) $side[2], fit: 'cover')
        : $pictor->url($whole, width: $width);
}

// WordPress compares names of files to make srcset, so src changes behind it.
add_filter('wp_calculate_image_srcset', function ($sources, $size, $src, $meta, $id) {
    return array_map(fn($one) => ['url' => pictor_url($one['url'], $id, $one['value'])] + $one, $sources);
}, 10, 5);

add_filter('wp_get_attachment_image_attributes', function ($attributes, $attachment) {
    return ['src' => pictor_url($attributes['src'], $attachment->ID)] + $attributes;
}, 10, 2);

add_filter('wp_content_img_tag', function ($tag, $context, $id) {
    $replace = fn($src) => esc_url(pictor_url(html_entity_decode($src[0]), $id));
    return preg_replace_callback('/(?<=\ssrc=")(?!data:)[^"]+/', $replace, $tag);
}, 10, 3);
