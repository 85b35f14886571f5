import Foundation

/// A request received by a test's server.
struct ReceivedRequest: Sendable {
    var method = ""
    /// The target as on the request line.
    var target = ""
    /// In order of arrival, with names as received.
    var fields: [(name: String, value: String)] = []
    /// The first bytes of the content, without chunk framing; see `WebServer.keptBody`.
    var body: [UInt8] = []
    /// The number of all body bytes.
    var bodyCount = 0
    var trailers: [(name: String, value: String)] = []
    /// The connection's index, from 0.
    var connection = 0
    /// The index of the request on its connection, from 0.
    var turn = 0

    var path: String { String(self.target.prefix { $0 != "?" }) }
    var query: String { String(self.target.drop { $0 != "?" }.dropFirst()) }
    var text: String { String(decoding: self.body, as: UTF8.self) }

    /// The values of the fields called `name`.
    func values(_ name: String) -> [String] {
        self.fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    subscript(_ name: String) -> String? { self.values(name).first }

    /// The request line and the fields as text, one per line.
    var head: String {
        "\(self.method) \(self.target)\n" + self.fields.map { "\($0.name): \($0.value)\n" }.joined()
    }
}
