// CompletionStyle BASE FILE: loads BASE/file in two ways, puts it to BASE/upload/completion, and expects two errors.
import Foundation
import URLLoading

let arguments = CommandLine.arguments
guard arguments.count == 3, let base = URL(string: arguments[1]),
    let wanted = FileManager.default.contents(atPath: arguments[2])
else {
    print("usage: CompletionStyle BASE FILE")
    exit(64)
}

@Sendable func fail(_ reason: String) -> Never {
    print(reason)
    exit(1)
}

let session = URLSession.shared
let group = DispatchGroup()

group.enter()
session.dataTask(with: base.appendingPathComponent("file")) { data, response, error in
    if let error = error { fail("data: \(error)") }
    guard (response as? HTTPURLResponse)?.statusCode == 200 else { fail("data: no 200") }
    guard data == wanted else { fail("data: \(data?.count ?? 0) bytes") }
    print("data: \(wanted.count) bytes")
    group.leave()
}.resume()

group.enter()
session.downloadTask(with: base.appendingPathComponent("file")) { place, response, error in
    guard let place = place else { fail("download: \(error.map { "\($0)" } ?? "no file")") }
    guard FileManager.default.contents(atPath: place.path) == wanted else { fail("download: another file") }
    print("download: as \(response?.suggestedFilename ?? "?")")
    group.leave()
}.resume()

group.enter()
var put = URLRequest(url: base.appendingPathComponent("upload/completion"))
put.httpMethod = "PUT"
session.uploadTask(with: put, from: wanted) { _, response, error in
    guard let answer = response as? HTTPURLResponse else { fail("upload: \(error.map { "\($0)" } ?? "no answer")") }
    guard answer.statusCode == 201 || answer.statusCode == 204 else { fail("upload: \(answer.statusCode)") }
    print("upload: \(answer.statusCode)")
    group.leave()
}.resume()

// An error of the server is no error of the load.
group.enter()
session.dataTask(with: URLRequest(url: base.appendingPathComponent("missing"))) { data, response, error in
    guard error == nil, let data = data, (response as? HTTPURLResponse)?.statusCode == 404 else {
        fail("missing: \(String(describing: response)), \(String(describing: error))")
    }
    print("missing: 404 with \(data.isEmpty ? "nothing" : "a body")")
    group.leave()
}.resume()

// Port 1 has no listener.
group.enter()
session.dataTask(with: URL(string: "http://127.0.0.1:1/")!) { data, response, error in
    guard let error = error as? URLError, data == nil, response == nil else { fail("refused: no error") }
    guard error.code == .cannotConnectToHost, error.failingURL?.port == 1 else { fail("refused: \(error)") }
    print("refused: \(error.code.rawValue)")
    group.leave()
}.resume()

guard group.wait(timeout: .now() + 30) == .success else { fail("no end after 30 seconds") }
