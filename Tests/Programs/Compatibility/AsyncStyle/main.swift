// AsyncStyle BASE FILE: loads BASE/file several times at once, puts it to BASE/upload/async, and cancels BASE/slow/file.
import Foundation
import URLLoading

struct Unexpected: Error {
    let what: String
    init(_ what: String) { self.what = what }
}

func check(_ isRight: Bool, _ what: String) throws {
    if !isRight { throw Unexpected(what) }
}

func load(_ url: URL, in session: URLSession) async throws -> Data {
    let (data, response) = try await session.data(from: url)
    try check((response as? HTTPURLResponse)?.statusCode == 200, "\(response)")
    return data
}

let arguments = CommandLine.arguments
guard arguments.count == 3, let base = URL(string: arguments[1]),
    let wanted = FileManager.default.contents(atPath: arguments[2])
else {
    print("usage: AsyncStyle BASE FILE")
    exit(64)
}

do {
    let session = URLSession(configuration: .default)
    let file = base.appendingPathComponent("file")

    try await withThrowingTaskGroup(of: Data.self) { group in
        for _ in 0..<10 { group.addTask { try await load(file, in: session) } }
        for try await data in group { try check(data == wanted, "loaded \(data.count) bytes") }
    }

    var put = URLRequest(url: base.appendingPathComponent("upload/async"))
    put.httpMethod = "PUT"
    let (_, answer) = try await session.upload(for: put, from: wanted)
    try check([201, 204].contains((answer as? HTTPURLResponse)?.statusCode), "\(answer)")
    let again = try await load(base.appendingPathComponent("upload/async"), in: session)
    try check(again == wanted, "what was put came back as \(again.count) bytes")

    let (place, _) = try await session.download(from: file)
    try check(FileManager.default.contents(atPath: place.path) == wanted, "another file")
    try FileManager.default.removeItem(at: place)

    let slow = Task { try await session.data(from: base.appendingPathComponent("slow/file")) }
    try await Task.sleep(nanoseconds: 100_000_000)
    slow.cancel()
    do {
        _ = try await slow.value
        throw Unexpected("a cancelled load gave something")
    } catch let error as URLError where error.code == .cancelled {
        print("cancelled")
    }
    session.invalidateAndCancel()
    print("done")
} catch {
    print("failed:", error)
    exit(1)
}
