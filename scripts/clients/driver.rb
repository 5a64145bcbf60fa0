require_relative "pictor"

SIDES = %w[w h scale].freeze
NUMBERS = %w[quality exp].freeze

STDIN.set_encoding("UTF-8")
STDIN.each_line(chomp: true) do |line|
  base, key, secret, path, typed, source, *rest = line.split("\t", -1)
  options = rest.map { |item| item.split("=", 2) }
  pictor = Pictor.new(base, key_id: key, secret: key.empty? ? nil : secret)
  if typed == "1"
    values = options.to_h do |name, value|
      [Pictor::NAMES.key(name), SIDES.include?(name) ? value.to_f : NUMBERS.include?(name) ? value.to_i : value]
    end
    puts pictor.url(source, path: path, **values)
  else
    puts pictor.url(source, path: path, more: options.to_h)
  end
end
