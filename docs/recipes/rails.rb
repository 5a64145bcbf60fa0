# app/helpers/pictor_helper.rb, with pictor.rb in lib/.
#
#   <%= pictor_image_tag rails_blob_url(post.cover), width: 800, widths: [400, 800, 1600], alt: "A hill" %>
#   <%= pictor_image_tag rails_blob_url(user.avatar), width: 96, height: 96, alt: user.name %>
require "pictor"

module PictorHelper
  PICTOR = Pictor.new(ENV.fetch("PICTOR_BASE"), key_id: "main", secret: ENV.fetch("PICTOR_SECRET"))

  # With widths, the image follows the layout, and the browser picks one; without, it has a fixed size, in points.
  def pictor_image_tag(source, width:, height: nil, widths: nil, sizes: "100vw", **attributes)
    fit = ("cover" if height)
    if widths
      candidates = widths.map do |side|
        [PICTOR.url(source, width: side, height: height && side.to_f * height / width, fit: fit), "#{side}w"]
      end
    else
      candidates = [1, 2, 3].map do |scale|
        [PICTOR.url(source, width: width, height: height, scale: scale, fit: fit), "#{scale}x"]
      end
      sizes = nil
    end
    src = PICTOR.url(source, width: width, height: height, fit: fit)
    image_tag(src, { srcset: candidates, sizes: sizes, width: width, height: height, loading: "lazy" }.merge(attributes))
  end
end
