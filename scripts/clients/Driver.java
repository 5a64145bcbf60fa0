import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

public class Driver {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line; (line = lines.readLine()) != null;) {
            String[] fields = line.split("\t", -1);
            Pictor pictor = fields[1].isEmpty() ? new Pictor(fields[0]) : new Pictor(fields[0], fields[1], fields[2]);
            Pictor.Image image = pictor.image(fields[5]).path(fields[3]);
            for (int index = 6; index < fields.length; index++) {
                String[] parts = fields[index].split("=", 2);
                String value = parts[1];
                switch (fields[4].equals("1") ? parts[0] : "") {
                    case "w": image.width(Double.parseDouble(value)); break;
                    case "h": image.height(Double.parseDouble(value)); break;
                    case "quality": image.quality(Integer.parseInt(value)); break;
                    case "exp": image.expires(Long.parseLong(value)); break;
                    case "scale": image.scale(Double.parseDouble(value)); break;
                    case "fit": image.fit(Pictor.Fit.valueOf(value)); break;
                    case "position": image.position(value); break;
                    case "format": image.format(Pictor.Format.valueOf(value)); break;
                    case "preset": image.preset(value); break;
                    default: image.set(parts[0], value);
                }
            }
            out.println(image);
        }
    }
}
