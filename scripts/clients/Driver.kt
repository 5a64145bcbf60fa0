import java.io.PrintStream

fun main() {
    val out = PrintStream(System.out, true, "UTF-8")
    for (line in System.`in`.bufferedReader(Charsets.UTF_8).lineSequence()) {
        val fields = line.split("\t")
        val pictor = Pictor(fields[0], if (fields[1].isEmpty()) null else signer(fields[1], fields[2]))
        val options = fields.drop(6).map { it.substringBefore("=") to it.substringAfter("=") }.toMap()
        out.println(if (fields[4] == "0") pictor.url(fields[5], path = fields[3], more = options) else pictor.url(
            fields[5], options["w"]?.toDouble(), options["h"]?.toDouble(), options["scale"]?.toDouble(),
            options["fit"]?.let { name -> Pictor.Fit.values().first { it.name.toLowerCase() == name } },
            options["position"],
            options["format"]?.let { name -> Pictor.Format.values().first { it.name.toLowerCase() == name } },
            options["quality"]?.toInt(), options["preset"], options["exp"]?.toLong(), fields[3]))
    }
}
