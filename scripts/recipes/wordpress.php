<?php
// Starts WordPress with the recipe as its plugin. In place of the database: the options below, and an attachment in the
// cache of objects.
error_reporting(E_ERROR);
$uploads = getenv('ORIGIN') . '/uploads';
$options = ['siteurl' => getenv('ORIGIN'), 'home' => getenv('ORIGIN'), 'blog_charset' => 'UTF-8', 'upload_url_path' => $uploads,
    'active_plugins' => serialize(['pictor/recipe.php']), 'cron' => serialize(['version' => 2]), 'thumbnail_size_w' => 150, 'thumbnail_size_h' => 150,
    'large_size_w' => 1024, 'large_size_h' => 1024];
foreach (['ABSPATH' => getenv('WORDPRESS') . '/', 'WP_CONTENT_DIR' => __DIR__, 'WP_PLUGIN_DIR' => __DIR__ . '/plugins', 'DB_NAME' => '',
    'DB_USER' => '', 'DB_PASSWORD' => '', 'DB_HOST' => '', 'PICTOR_BASE' => 'https://images.example.com',
    'PICTOR_KEY' => 'main:' . getenv('PICTOR_SECRET'), 'DISABLE_WP_CRON' => true] as $name => $value) {
    define($name, $value);
}
$table_prefix = 'wp_';
$_SERVER += ['HTTP_HOST' => 'localhost', 'REQUEST_URI' => '/', 'SERVER_PROTOCOL' => 'HTTP/1.1', 'REQUEST_METHOD' => 'GET'];
mkdir('plugins/pictor', 0777, true);
array_map(fn($file) => rename($file, "plugins/pictor/$file"), ['recipe.php', 'Pictor.php']);
file_put_contents('db.php', '<?php $wpdb = new class("", "", "", "") extends wpdb {
    public function db_connect($allow_bail = true) { return $this->ready = true; }
    public function set_sql_mode($modes = []) {}
    public function _real_escape($text) { return addslashes($text); }
    public function query($query) {
        $is_options = preg_match("/FROM wp_options( WHERE autoload|$)/", $query);
        $options = array_map(null, array_keys($GLOBALS["options"]), $GLOBALS["options"]);
        $this->last_result = $is_options ? array_map(fn($one) => (object) ["option_name" => $one[0], "option_value" => $one[1]], $options) : [];
        return count($this->last_result);
    }
    public function db_version() { return "8.0"; }
};');
require ABSPATH . 'wp-settings.php';

foreach (['thumbnail' => [150, 150], 'medium' => [300, 200], 'medium_large' => [768, 512], 'large' => [1024, 683]] as $name => [$width, $height]) {
    $sizes[$name] = ['file' => "hills-{$width}x$height.jpg", 'width' => $width, 'height' => $height, 'mime-type' => 'image/jpeg'];
}
$meta = ['file' => '2024/05/hills.jpg', 'width' => 1800, 'height' => 1200, 'sizes' => $sizes];
wp_cache_set(7, (object) ['ID' => 7, 'post_type' => 'attachment', 'post_mime_type' => 'image/jpeg', 'guid' => '', 'filter' => 'raw'], 'posts');
wp_cache_set(7, ['_wp_attached_file' => [$meta['file']], '_wp_attachment_metadata' => [serialize($meta)]], 'post_meta');

foreach (['thumbnail', 'medium', 'large', 'full'] as $size) {
    echo wp_get_attachment_image(7, $size), "\n";
}
$content = "<img class=\"wp-image-7\" src=\"$uploads/2024/05/hills-1024x683.jpg\" alt=\"\" width=\"1024\" height=\"683\">";
echo apply_filters('the_content', $content), "\n";
$foreign = apply_filters('the_content', '<img src="https://elsewhere.example/a-300x200.jpg" alt="" width="1" height="1">');
if (!str_contains($foreign, 'src="https://elsewhere.example/a-300x200.jpg"')) {
    throw new Exception("an image from elsewhere is changed: $foreign");
}
