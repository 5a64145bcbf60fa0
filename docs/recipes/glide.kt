// PictorGlide.kt, with Pictor.kt beside it: Glide.with(view).load(PictorImage(source)).into(view)
import android.content.Context
import com.bumptech.glide.Glide
import com.bumptech.glide.Registry
import com.bumptech.glide.annotation.GlideModule
import com.bumptech.glide.load.Options
import com.bumptech.glide.load.model.*
import com.bumptech.glide.load.model.stream.BaseGlideUrlLoader
import com.bumptech.glide.module.AppGlideModule
import java.io.InputStream

data class PictorImage(val source: String)

class PictorLoader(loader: ModelLoader<GlideUrl, InputStream>) : BaseGlideUrlLoader<PictorImage>(loader) {
    private val pictor = Pictor("https://images.example.com")
    override fun handles(model: PictorImage) = true
    // Glide tells the view's sides in pixels. Target.SIZE_ORIGINAL is negative: the builder leaves it out.
    override fun getUrl(model: PictorImage, width: Int, height: Int, options: Options) =
        pictor.url(model.source, width, height, fit = Pictor.Fit.Cover)
    // Android decodes WebP, from version 12 on AVIF too.
    override fun getHeaders(model: PictorImage, width: Int, height: Int, options: Options): Headers =
        LazyHeaders.Builder().addHeader("Accept", "image/webp,image/*").build()

    class Factory : ModelLoaderFactory<PictorImage, InputStream> {
        override fun build(factory: MultiModelLoaderFactory) =
            PictorLoader(factory.build(GlideUrl::class.java, InputStream::class.java))
        override fun teardown() {}
    }
}

@GlideModule class ImageModule : AppGlideModule() {
    override fun registerComponents(context: Context, glide: Glide, registry: Registry) =
        registry.append(PictorImage::class.java, InputStream::class.java, PictorLoader.Factory()).let {}
}

// For signed URLs from your server: one of another hour is the same image.
class SignedUrl(url: String) : GlideUrl(url) {
    override fun getCacheKey() = super.getCacheKey().replace(Regex("(?<=[?&])(exp|sig)=[^&]*&?"), "")
}
