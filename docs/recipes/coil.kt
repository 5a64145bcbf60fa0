// PictorCoil.kt, with Pictor.kt beside it, for Coil 3: AsyncImage(PictorImage(source), "A hill", imageLoader = loader)
import android.content.Context
import coil3.ImageLoader
import coil3.map.Mapper
import coil3.network.okhttp.OkHttpNetworkFetcherFactory
import coil3.request.ImageRequest
import coil3.request.Options
import coil3.size.Dimension
import okhttp3.OkHttpClient

data class PictorImage(val source: String)

class PictorMapper : Mapper<PictorImage, String> {
    private val pictor = Pictor("https://images.example.com")
    // Coil tells the view's sides in pixels.
    override fun map(data: PictorImage, options: Options): String {
        val (width, height) = options.size
        return pictor.url(
            data.source, (width as? Dimension.Pixels)?.px, (height as? Dimension.Pixels)?.px, fit = Pictor.Fit.Cover)
    }
}

// Android decodes WebP, from version 12 on AVIF too.
val client = OkHttpClient.Builder().addInterceptor {
    it.proceed(it.request().newBuilder().header("Accept", "image/webp,image/*").build())
}.build()

fun pictorLoader(context: Context) = ImageLoader.Builder(context).components {
    add(PictorMapper())
    add(OkHttpNetworkFetcherFactory(callFactory = { client }))
}.build()

// For signed URLs from your server: one of another hour is the same image.
fun signedRequest(context: Context, url: String): ImageRequest {
    val key = url.replace(Regex("(?<=[?&])(exp|sig)=[^&]*&?"), "")
    return ImageRequest.Builder(context).data(url).memoryCacheKey(key).diskCacheKey(key).build()
}
