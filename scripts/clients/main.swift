import Foundation

while let line = readLine() {
  let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
  let pictor = Pictor(base: fields[0], sign: fields[1].isEmpty ? nil : signer(id: fields[1], secret: fields[2]))
  let url = pictor.url(fields[5], path: fields[3]) { options in
    for item in fields[6...] {
      let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      let (name, value) = (parts[0], parts[1])
      switch fields[4] == "1" ? name : "" {
      case "w": options.width = Double(value)
      case "h": options.height = Double(value)
      case "quality": options.quality = Int(value)
      case "exp": options.expires = Int(value)
      case "scale": options.scale = Double(value)
      case "fit": options.fit = Pictor.Fit(rawValue: value)
      case "position": options.position = value
      case "format": options.format = Pictor.Format(rawValue: value)
      case "preset": options.preset = value
      default: options.more[name] = value
      }
    }
  }
  print(url?.absoluteString ?? "no URL")
}
