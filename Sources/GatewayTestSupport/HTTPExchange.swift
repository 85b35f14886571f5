import ControlAPI
import Foundation
import URLLoading

/// A response as bytes on the wire.
package struct HTTPReply: Sendable {
    package let status: Int
    /// Names in lower case; the values of repeated fields are joined with commas.
    package let fields: [String: String]
    /// Without the transfer coding.
    package let body: [UInt8]

    package var text: String { String(decoding: self.body, as: UTF8.self) }

    package var json: JSONValue {
        (try? JSONDecoder().decode(JSONValue.self, from: Data(self.body))) ?? .null
    }

    /// - Throws: `HTTPExchange.Malformed` for bytes that are no whole response.
    package init(_ bytes: [UInt8]) throws {
        guard let end = HTTPExchange.end(of: "\r\n\r\n", in: bytes) else { throw HTTPExchange.Malformed(bytes: bytes) }
        let lines = String(decoding: bytes[..<(end - 4)], as: UTF8.self).components(separatedBy: "\r\n")
        guard lines[0].hasPrefix("HTTP/1.1 "), let status = Int(lines[0].dropFirst(9).prefix(3)) else {
            throw HTTPExchange.Malformed(bytes: bytes)
        }
        self.status = status
        self.fields = lines.dropFirst().reduce(into: [:]) { fields, line in
            let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            let name = parts[0].lowercased()
            let value = parts.count > 1 ? parts[1] : ""
            fields[name] = fields[name].map { "\($0), \(value)" } ?? value
        }
        let content = Array(bytes[end...])
        self.body = self.fields["transfer-encoding"] == "chunked" ? try HTTPExchange.dechunked(content) : content
    }
}

extension JSONValue {
    /// `null` for text that is not JSON.
    package init(text: String) {
        self = (try? JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))) ?? .null
    }

    package var integer: Int? {
        if case .integer(let number) = self { number } else { nil }
    }

    package var boolean: Bool? {
        if case .boolean(let value) = self { value } else { nil }
    }

    package var items: [JSONValue] {
        if case .array(let items) = self { items } else { [] }
    }
}

/// One connection to a control plane.
package struct HTTPExchange: Sendable {
    /// Bytes that are no response.
    package struct Malformed: Error {
        package let bytes: [UInt8]
    }

    /// Far beyond what a response takes while other tests use all processors: a test that hangs ends with an error.
    private static let limit: TimeInterval = 120

    /// Does not take the proxies of the environment.
    private static let session = {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connectionProxyDictionary = [:]
        return URLSession(configuration: configuration)
    }()

    private let task: URLSessionStreamTask

    /// - Parameter url: `http://127.0.0.1:PORT`.
    package init(_ url: String) {
        let port = Int(url.split(separator: ":").last ?? "") ?? 0
        self.task = Self.session.streamTask(withHostName: "127.0.0.1", port: port)
        self.task.resume()
    }

    package func send(_ bytes: [UInt8]) async throws {
        try await self.task.write(Data(bytes), timeout: Self.limit)
    }

    /// Everything until the server closes, for at most 240 s.
    package func receiveToEnd() async throws -> [UInt8] {
        var all: [UInt8] = []
        let deadline = ContinuousClock.now.advanced(by: .seconds(240))
        while true {
            guard ContinuousClock.now < deadline else { throw Malformed(bytes: all) }
            let (bytes, isOver) = try await self.task.readData(ofMinLength: 1, maxLength: 65536, timeout: Self.limit)
            all += bytes ?? Data()
            if isOver { return all }
        }
    }

    /// Everything through the first occurrence of `text`, and what arrived with it.
    package func receive(through text: String) async throws -> String {
        var all: [UInt8] = []
        while Self.end(of: text, in: all) == nil {
            let (bytes, isOver) = try await self.task.readData(ofMinLength: 1, maxLength: 65536, timeout: Self.limit)
            all += bytes ?? Data()
            if isOver { throw Malformed(bytes: all) }
        }
        return String(decoding: all, as: UTF8.self)
    }

    package func close() {
        self.task.cancel()
    }

    // MARK: Whole exchanges

    /// Sends one request on a connection of its own.
    /// - Parameter fields: header fields; `Host` and `Content-Length` are added unless given.
    package static func run(
        _ url: String, _ method: String, _ target: String, fields: [String: String] = [:], body: [UInt8] = []
    ) async throws -> HTTPReply {
        var fields = fields
        fields["Host"] = fields["Host"] ?? String(url.dropFirst("http://".count))
        if !body.isEmpty || method != "GET" { fields["Content-Length"] = fields["Content-Length"] ?? "\(body.count)" }
        fields["Connection"] = fields["Connection"] ?? "close"
        let head = fields.map { "\($0.key): \($0.value)\r\n" }.joined()
        return try await self.run(url, Array("\(method) \(target) HTTP/1.1\r\n\(head)\r\n".utf8) + body)
    }

    /// Sends bytes on a connection of their own, and reads until the server closes it.
    package static func run(_ url: String, _ request: [UInt8]) async throws -> HTTPReply {
        let exchange = HTTPExchange(url)
        defer { exchange.close() }
        // The server may refuse and close while the body is still sent.
        try? await exchange.send(request)
        return try HTTPReply(try await exchange.receiveToEnd())
    }

    // MARK: Bytes

    /// The index after the first occurrence of `text`.
    fileprivate static func end(of text: String, in bytes: [UInt8]) -> Int? {
        let mark = Array(text.utf8)
        guard bytes.count >= mark.count else { return nil }
        return (0...(bytes.count - mark.count)).first { bytes[$0...].starts(with: mark) }.map { $0 + mark.count }
    }

    /// The content of a chunked body (RFC 9112 §7.1).
    fileprivate static func dechunked(_ bytes: [UInt8]) throws -> [UInt8] {
        var content: [UInt8] = []
        var rest = bytes[...]
        while let line = rest.firstIndex(of: 0x0A) {
            let size = String(decoding: rest[..<line], as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
            guard let count = Int(size, radix: 16), rest.endIndex >= line + 1 + count else { break }
            if count == 0 { return content }
            content += rest[(line + 1)...].prefix(count)
            rest = rest[(line + 1 + count)...].dropFirst(2)
        }
        throw Malformed(bytes: bytes)
    }
}
