import Foundation

/// What a test's server was asked.
struct ReceivedRequest: Sendable {
    var method = ""
    /// As on the request line.
    var target = ""
    /// In their order, names as they came.
    var fields: [(name: String, value: String)] = []
    /// The first of its bytes, without the framing of chunks; see `WebServer.keptBody`.
    var body: [UInt8] = []
    /// All bytes of the body.
    var bodyCount = 0
    var trailers: [(name: String, value: String)] = []
    /// The connection's number, from 0 up.
    var connection = 0
    /// Which of the connection's requests this is, from 0 up.
    var turn = 0

    var path: String { String(self.target.prefix { $0 != "?" }) }
    var query: String { String(self.target.drop { $0 != "?" }.dropFirst()) }
    var text: String { String(decoding: self.body, as: UTF8.self) }

    /// The values of the fields called `name`.
    func values(_ name: String) -> [String] {
        self.fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    subscript(_ name: String) -> String? { self.values(name).first }

    /// Request line and fields as text, a line each.
    var head: String {
        "\(self.method) \(self.target)\n" + self.fields.map { "\($0.name): \($0.value)\n" }.joined()
    }
}
