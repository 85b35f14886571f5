// LineStyle BASE FILE: reads BASE/text line by line and compares it with FILE, then reads the beginning of it alone.
import Foundation
import URLLoading

let arguments = CommandLine.arguments
guard arguments.count == 3, let base = URL(string: arguments[1]),
    let text = try? String(contentsOfFile: arguments[2], encoding: .utf8)
else {
    print("usage: LineStyle BASE FILE")
    exit(64)
}

do {
    let wanted = text.split(whereSeparator: \.isNewline).map(String.init)
    let url = base.appendingPathComponent("text")
    let (bytes, response) = try await URLSession.shared.bytes(from: url)
    guard (response as? HTTPURLResponse)?.statusCode == 200 else {
        print(response)
        exit(1)
    }
    var lines: [String] = []
    for try await line in bytes.lines { lines.append(line) }
    guard lines == wanted else {
        print("\(lines.count) lines, not \(wanted.count)")
        exit(1)
    }

    var first: [String] = []
    for try await line in url.lines {
        first.append(line)
        if first.count == 3 { break }
    }
    guard first == Array(wanted.prefix(3)) else {
        print("another beginning:", first)
        exit(1)
    }

    let (some, _) = try await URLSession.shared.bytes(for: URLRequest(url: url))
    var count = 0
    for try await byte in some {
        guard byte == Array(text.utf8)[count] else { exit(1) }
        count += 1
        if count == 100 { break }
    }
    some.task.cancel()
    print("\(lines.count) lines")
} catch {
    print("failed:", error)
    exit(1)
}
