import Foundation

let source = ProcessInfo.processInfo.environment["ORIGIN"]! + "/hills.jpg"
let url = pictorURL(source, width: 160.2, height: 120, density: 2)!.absoluteString
print("<img data-unsigned srcset=\"\(url.replacingOccurrences(of: "&", with: "&amp;")) 2x\" width=161 height=120>")
let (first, second) = ("\(url)&exp=3600&sig=main.a", url.replacingOccurrences(of: "?", with: "?exp=7200&") + "&sig=main.b")
precondition(pictorKey(URL(string: first)!) == url && pictorKey(URL(string: second)!) == url)
