import ByteKernels
import Foundation
import HTTP2Engine
import SimulatedNetwork
import StreamTransport
import TestSupport

/// Serves a `SimulatedUpload` over HTTP/1.1 and HTTP/2 on the simulated network.
final class SimulatedUploadServer {
    /// How long a connection lasts at least, so that its first response can arrive.
    private static let shortestLife = Duration.milliseconds(1)

    let upload: SimulatedUpload
    private let network: SimulatedNetwork
    private let listener: ScriptedListener
    private let end: SimulatedUpload.End
    private var connections: [UploadConnection] = []

    init(
        _ upload: SimulatedUpload, _ listener: ScriptedListener, on network: SimulatedNetwork,
        end: SimulatedUpload.End
    ) {
        self.upload = upload
        self.listener = listener
        self.network = network
        self.end = end
    }

    func step() {
        while self.connections.count < self.listener.accepted.count {
            self.connections.append(UploadConnection(self.listener.accepted[self.connections.count], self.network.now))
        }
        for connection in self.connections where !connection.peer.isClosed { self.step(connection) }
    }

    /// A request to the upload ends all others, which the client has given up.
    private func takeOver(_ connection: UploadConnection) {
        for other in self.connections where other !== connection && !other.peer.isClosed { other.peer.reset() }
    }

    private func step(_ connection: UploadConnection) {
        let peer = connection.peer
        guard peer.failure == nil else { return peer.close() }
        if connection.isCut { return self.cut(connection) }
        if !peer.received.isEmpty {
            if !connection.isWithinRequest { self.takeOver(connection) }
            connection.received(peer.takeReceived(), self.upload)
        }
        connection.flush()
        if peer.sawEnd, peer.unsentBytes == 0 { peer.close() }
    }

    private func cut(_ connection: UploadConnection) {
        connection.flush()
        let peer = connection.peer
        switch self.end {
        case .finish:
            peer.finish()
            _ = peer.takeReceived()
            if peer.sawEnd { peer.close() }
        case .reset:
            // Before that the 104 response may be lost.
            guard connection.began.duration(to: self.network.now) > Self.shortestLife else { return }
            peer.reset()
        }
    }
}

/// One connection of a `SimulatedUploadServer`.
private final class UploadConnection {
    let peer: ScriptedPeer
    let began: MonotonicInstant
    private(set) var isCut = false
    private var input: [UInt8] = []
    /// Of the current request's body; `nil` outside of it.
    private var missing: Int?
    private var engine: HTTP2Connection?
    private var methods: [HTTP2StreamID: String] = [:]
    private var hasOpenStream = false

    init(_ peer: ScriptedPeer, _ began: MonotonicInstant) {
        self.peer = peer
        self.began = began
    }

    var isWithinRequest: Bool { self.missing != nil || self.hasOpenStream }

    func received(_ bytes: [UInt8], _ upload: SimulatedUpload) {
        if self.engine == nil, self.missing == nil, self.input.isEmpty, bytes.starts(with: "PRI * HTTP/2.0".utf8) {
            self.engine = try? HTTP2Connection(.server)
        }
        if let engine { return self.receivedFrames(bytes, engine, upload) }
        self.input += bytes
        while !self.isCut, self.readMessage(upload) {}
    }

    func flush() {
        guard let engine, self.peer.unsentBytes == 0 else { return }
        engine.write {
            self.peer.send([UInt8]($0))
            return self.peer.unsentBytes == 0
        }
    }

    // MARK: HTTP/1.1

    /// - Returns: whether more may be read.
    private func readMessage(_ upload: SimulatedUpload) -> Bool {
        guard let missing else { return self.readHead(upload) }
        let piece = self.input.prefix(missing)
        self.input.removeFirst(piece.count)
        self.missing = missing - piece.count
        if upload.bodyReceived(piece) { self.isCut = true }
        guard self.missing == 0, !self.isCut else { return false }
        self.missing = nil
        self.reply(upload.bodyEnded(), upload)
        return true
    }

    private func readHead(_ upload: SimulatedUpload) -> Bool {
        let text = String(decoding: self.input.prefix(4096), as: UTF8.self)
        guard let end = text.range(of: "\r\n\r\n") else { return false }
        let head = text[..<end.lowerBound]
        self.input.removeFirst(head.utf8.count + 4)
        let lines = head.split(separator: "\r\n")
        let words = lines[0].split(separator: " ").map(String.init)
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            let name = line.prefix { $0 != ":" }
            fields[name.lowercased()] = String(line.dropFirst(name.count + 1).drop { $0 == " " })
        }
        let length = fields["content-length"].flatMap { Int($0) }
        let reply = upload.headReceived(method: words[0], path: words[1], fields)
        self.reply(reply, upload)
        if upload.isCut, reply == .announce { self.isCut = true }
        guard words[0] != "HEAD", !self.isCut else { return !self.isCut }
        if case .respond = reply {
            // The body of a refused part is not read.
            self.isCut = length ?? 0 > 0
            return false
        }
        self.missing = length ?? 0
        return true
    }

    private func reply(_ reply: SimulatedUpload.Reply, _ upload: SimulatedUpload) {
        switch reply {
        case .none: break
        case .cut: self.isCut = true
        case .announce: self.send(104, "", upload)
        case .respond(let status): self.send(status, status == 204 ? "" : "Content-Length: 4\r\n", upload)
        }
    }

    private func send(_ status: Int, _ framing: String, _ upload: SimulatedUpload) {
        let fields = upload.fields(status).map { "\($0.name): \($0.value)\r\n" }.joined()
        self.peer.send("HTTP/1.1 \(status) Said\r\n\(fields)\(framing)\r\n" + (framing.isEmpty ? "" : "done"))
    }

    // MARK: HTTP/2

    private func receivedFrames(_ bytes: [UInt8], _ engine: HTTP2Connection, _ upload: SimulatedUpload) {
        var offset = 0
        while !self.isCut, let event = engine.nextEvent(in: bytes.span.bytes, from: &offset) {
            switch event {
            case .head(let stream, let block, let isLast):
                var fields: [String: String] = [:]
                for index in 0..<block.count {
                    fields[String(decoding: block.name(at: index), as: UTF8.self)] =
                        String(decoding: block.value(at: index), as: UTF8.self)
                }
                let method = fields[":method"] ?? ""
                self.methods[stream] = method
                self.hasOpenStream = !isLast
                let reply = upload.headReceived(method: method, path: fields[":path"] ?? "", fields)
                self.reply(reply, on: stream, engine, upload)
                if upload.isCut, reply == .announce { self.isCut = true }
                if isLast, method != "HEAD", !self.isCut { self.reply(upload.bodyEnded(), on: stream, engine, upload) }
            case .data(let stream, let range):
                engine.consume(stream, range.count)
                if upload.bodyReceived(bytes[range]) { self.isCut = true }
            case .inputEnded(let stream):
                self.hasOpenStream = false
                if self.methods[stream] != "HEAD" { self.reply(upload.bodyEnded(), on: stream, engine, upload) }
            default: break
            }
        }
    }

    private func reply(
        _ reply: SimulatedUpload.Reply, on stream: HTTP2StreamID, _ engine: HTTP2Connection, _ upload: SimulatedUpload
    ) {
        switch reply {
        case .none: break
        case .cut: self.isCut = true
        case .announce: self.send(104, on: stream, engine, upload, endsOutput: false)
        case .respond(let status):
            let hasContent = status != 204
            self.send(status, on: stream, engine, upload, endsOutput: !hasContent)
            guard hasContent else { return }
            _ = try? engine.send(stream, Array("done".utf8).span.bytes)
            try? engine.endOutput(stream)
        }
    }

    private func send(
        _ status: Int, on stream: HTTP2StreamID, _ engine: HTTP2Connection, _ upload: SimulatedUpload,
        endsOutput: Bool
    ) {
        let block = HTTP2FieldBlock([(name: ":status", value: "\(status)")] + upload.fields(status))
        try? engine.respond(stream, block, endsOutput: endsOutput)
    }
}
