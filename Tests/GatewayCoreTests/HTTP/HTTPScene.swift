import ByteKernels
import Foundation
import GatewayCore
import StreamTransport
import TestSupport
import Testing
import WireText

/// A directory of files for one test, removed with the last reference.
final class ServedFolder {
    let path: String

    init() throws {
        self.path = NSTemporaryDirectory() + "sluice-files-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: self.path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: self.path)
    }

    @discardableResult
    func write(_ name: String, _ bytes: [UInt8]) throws -> ServedFolder {
        let url = URL(fileURLWithPath: self.path).appendingPathComponent(name)
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(bytes).write(to: url)
        return self
    }

    @discardableResult
    func write(_ name: String, _ text: String) throws -> ServedFolder { try self.write(name, Array(text.utf8)) }

    func link(_ name: String, to target: String) throws {
        try FileManager.default.createSymbolicLink(
            atPath: "\(self.path)/\(name)", withDestinationPath: target)
    }

    /// Removes the directory, and makes an empty one.
    func replace() throws -> ServedFolder {
        try self.remove()
        try FileManager.default.createDirectory(atPath: self.path, withIntermediateDirectories: true)
        return self
    }

    func remove() throws { try FileManager.default.removeItem(atPath: self.path) }

    /// Sets the time of a file's last change, in seconds from now.
    func setChange(of name: String, in seconds: Double) throws {
        try self.setChange(of: name, Date(timeIntervalSinceNow: seconds))
    }

    /// Sets the time of a file's last change, in seconds since 1970.
    func setChange(of name: String, at seconds: Double) throws {
        try self.setChange(of: name, Date(timeIntervalSince1970: seconds))
    }

    private func setChange(of name: String, _ date: Date) throws {
        try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: "\(self.path)/\(name)")
    }

    /// Cuts a file.
    func truncate(_ name: String, to count: UInt64) throws {
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: "\(self.path)/\(name)"))
        try handle.truncate(atOffset: count)
        try handle.close()
    }
}

/// A response as it came.
struct PlainResponse {
    let status: Int
    let fields: FieldLines
    let body: [UInt8]

    var text: String { String(decoding: self.body, as: UTF8.self) }

    subscript(_ name: String) -> String? { self.fields[name] }
}

/// Reads the responses that a peer received, one after another.
final class ResponseReader {
    private let peer: ScriptedPeer
    private var unread: [UInt8] = []

    init(_ peer: ScriptedPeer) {
        self.peer = peer
    }

    /// - Parameter isHead: whether the response has no body whatever its fields say.
    /// - Returns: the next response; `nil` if it does not come whole in time.
    func next(_ scene: GatewayScene, isHead: Bool = false) -> PlainResponse? {
        var found: PlainResponse?
        _ = scene.run {
            self.unread += self.peer.takeReceived()
            found = self.parse(isHead)
            return found != nil || self.peer.sawEnd || self.peer.failure != nil
        }
        return found
    }

    /// The bytes that came and belong to no response yet.
    func rest() -> [UInt8] {
        self.unread += self.peer.takeReceived()
        return self.unread
    }

    private func parse(_ isHead: Bool) -> PlainResponse? {
        var parser = ResponseParser()
        var used = 0
        guard let head = self.unread.withRawSpan({ try? parser.parse($0, consumed: &used) }) else { return nil }
        guard !isHead, head.status >= 200, head.status != 304 else { return self.take(head, used, used..<used) }
        guard head.fields["Transfer-Encoding"] == nil else { return self.parseChunks(head, used) }
        guard let length = head.fields["Content-Length"].flatMap({ Int($0) }), self.unread.count >= used + length else {
            return nil
        }
        return self.take(head, used + length, used..<(used + length))
    }

    private func take(_ head: ResponseHead, _ end: Int, _ body: Range<Int>) -> PlainResponse {
        let response = PlainResponse(status: head.status, fields: head.fields, body: Array(self.unread[body]))
        self.unread.removeFirst(end)
        return response
    }

    private func parseChunks(_ head: ResponseHead, _ start: Int) -> PlainResponse? {
        guard var decoder = try? RequestBodyDecoder(.chunked, limit: 1 << 30) else { return nil }
        var (used, body): (Int, [UInt8]) = (start, [])
        self.unread.withRawSpan { try? decoder.decode($0, consumed: &used, keeps: true, into: &body) }
        guard decoder.isComplete else { return nil }
        self.unread.removeFirst(used)
        return PlainResponse(status: head.status, fields: head.fields, body: body)
    }
}

extension GatewayScene {
    /// A client and the reader of its responses.
    func web(_ request: String = "") throws -> (peer: ScriptedPeer, reader: ResponseReader) {
        let peer = try self.client(1001)
        if !request.isEmpty { peer.send(request) }
        return (peer, ResponseReader(peer))
    }

    /// The response to one request on a connection of its own.
    func fetch(_ target: String, _ fields: String = "", method: String = "GET") throws -> PlainResponse {
        let (peer, reader) = try self.web("\(method) \(target) HTTP/1.1\r\nHost: a\r\n\(fields)\r\n")
        defer { peer.close() }
        return try #require(reader.next(self, isHead: method == "HEAD"))
    }
}
