import Foundation
import Rooms
import TestSupport
import WireText

/// The response that a program without a WebSocket receives: Server-Sent Events, or lines.
final class ClusterStream {
    /// A line of JSON, or an event's data with its id.
    struct Message {
        let data: Data
        var id: String?
    }

    private let peer: ScriptedPeer
    private let isEvents: Bool
    private var hasHead = false
    /// Bytes of the response that are not parsed yet.
    private var unread: [UInt8] = []
    private var chunks = ChunkReader(limit: 1024)
    /// Content without a complete message.
    private var text: [UInt8] = []

    init(_ peer: ScriptedPeer, isEvents: Bool) {
        self.peer = peer
        self.isEvents = isEvents
    }

    /// - Parameters:
    ///   - subscriptions: members of `subs`.
    ///   - lastEventID: of a browser that connects again.
    func request(_ subscriptions: [String], lastEventID: String?) {
        let body = #"{"subs":{\#(subscriptions.joined(separator: ","))}}"#
        if self.isEvents {
            let field = lastEventID.map { "Last-Event-ID: \($0)\r\n" } ?? ""
            self.peer.send("GET /events?cf_connect=\(PercentCoding.encoded(body)) HTTP/1.1\r\nHost: a\r\n\(field)\r\n")
        } else {
            self.peer.send("POST /events HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
        }
    }

    var isOver: Bool { self.peer.sawEnd || self.peer.failure != nil || self.peer.isClosed }

    func reset() { self.peer.reset() }
    func close() { self.peer.close() }

    /// The messages that are complete since the last call.
    /// - Throws: if the response is not one of such messages.
    func messages() throws -> [Message] {
        self.unread += self.peer.takeReceived()
        guard try self.readHead() else { return [] }
        try self.readChunks()
        let end: [UInt8] = self.isEvents ? [0x0A, 0x0A] : [0x0A]
        var messages: [Message] = []
        while let range = self.text.firstRange(of: end) {
            messages.append(try self.message(self.text[..<range.lowerBound]))
            self.text.removeSubrange(..<range.upperBound)
        }
        return messages
    }

    private func readHead() throws -> Bool {
        guard !self.hasHead else { return true }
        guard let range = self.unread.firstRange(of: Array("\r\n\r\n".utf8)) else { return false }
        let head = self.unread[..<range.lowerBound]
        guard head.starts(with: Array("HTTP/1.1 200 ".utf8)) else { throw Malformed(head) }
        self.hasHead = true
        self.unread.removeSubrange(..<range.upperBound)
        return true
    }

    private func readChunks() throws {
        let bytes = self.unread
        var offset = 0
        while case .content(let range) = try self.chunks.next(bytes.span.bytes, from: offset) {
            self.text += bytes[range]
            offset = range.upperBound
        }
        self.unread = []
    }

    private func message(_ text: ArraySlice<UInt8>) throws -> Message {
        guard self.isEvents else { return Message(data: Data(text)) }
        let fields = text.split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) }
        guard let data = fields.first, data.hasPrefix("data: "), fields.count <= 2 else { throw Malformed(text) }
        guard let id = fields.dropFirst().first else { return Message(data: Data(data.utf8.dropFirst(6))) }
        guard id.hasPrefix("id: ") else { throw Malformed(text) }
        return Message(data: Data(data.utf8.dropFirst(6)), id: String(id.dropFirst(4)))
    }

    private struct Malformed: Error {
        let text: String
        init(_ bytes: ArraySlice<UInt8>) { self.text = String(decoding: bytes, as: UTF8.self) }
    }
}
