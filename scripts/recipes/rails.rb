require "action_view"
$LOAD_PATH.unshift(__dir__)
ENV["PICTOR_BASE"] = "https://images.example.com"
require_relative "recipe"

ActionView::Base.include(PictorHelper)
view = ActionView::Base.with_empty_template_cache.new(ActionView::LookupContext.new([]), {}, nil)
puts view.render(inline: <<~ERB, locals: { source: ENV.fetch("ORIGIN") + "/hills.jpg" })
  <%= pictor_image_tag source, width: 800, widths: [400, 800, 1600], alt: "A hill & more" %>
  <%= pictor_image_tag source, width: 320, height: 180, widths: [320, 640], sizes: "50vw", alt: "" %>
  <%= pictor_image_tag source, width: 96, height: 96, alt: "" %>
ERB
