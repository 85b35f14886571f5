import StreamTransport
import TestSupport

/// An HTTP/2 server of raw frames that allows a number of streams at a time and refuses those beyond (RFC 9113 §5.1.2).
final class StreamLimitServer {
    /// Otherwise requests stay open.
    var answers = true
    /// Otherwise nothing is read and answered.
    var isAlive = true
    /// Refuses requests within the limit as well.
    var refusesAll = false
    /// Sends GOAWAY for no stream, and closes, after a refusal.
    var leavesAfterRefusal = false
    private(set) var requests = 0
    private(set) var pings = 0
    private(set) var connections: [Connection] = []
    private let listener: ScriptedListener
    private var limit: UInt32

    final class Connection {
        let peer: ScriptedPeer
        var open: Set<UInt32> = []
        fileprivate var input: [UInt8] = []
        fileprivate var hasPreface = false

        fileprivate init(_ peer: ScriptedPeer) { self.peer = peer }
    }

    init(_ listener: ScriptedListener, limit: UInt32) {
        self.listener = listener
        self.limit = limit
    }

    var openStreams: Int { self.connections.reduce(0) { $0 + $1.open.count } }

    /// Announces another limit on all connections.
    func allow(_ limit: UInt32) {
        self.limit = limit
        for connection in self.connections where !connection.peer.isClosed { self.sendSettings(connection) }
    }

    /// Refuses all open requests.
    func refuseAll() {
        for connection in self.connections {
            for stream in connection.open.sorted() { self.refuse(stream, on: connection) }
        }
    }

    /// Called in each step of the simulation.
    func step() {
        while self.connections.count < self.listener.accepted.count {
            let connection = Connection(self.listener.accepted[self.connections.count])
            self.connections.append(connection)
            self.sendSettings(connection)
        }
        guard self.isAlive else { return }
        for connection in self.connections where !connection.peer.isClosed {
            connection.input += connection.peer.takeReceived()
            self.read(connection)
            if connection.peer.sawEnd { connection.peer.close() }
        }
    }

    private func read(_ connection: Connection) {
        if !connection.hasPreface, connection.input.count >= 24 {
            connection.input.removeFirst(24)
            connection.hasPreface = true
        }
        while connection.hasPreface, connection.input.count >= 9 {
            let header = connection.input.prefix(9).map { UInt32($0) }
            let count = Int(header[0] << 16 | header[1] << 8 | header[2])
            guard connection.input.count >= 9 + count else { return }
            let payload = Array(connection.input[9..<9 + count])
            connection.input.removeFirst(9 + count)
            let stream = header[5] << 24 | header[6] << 16 | header[7] << 8 | header[8]
            self.received(UInt8(header[3]), UInt8(header[4]), stream, payload, on: connection)
        }
    }

    private func received(
        _ type: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8], on connection: Connection
    ) {
        switch type {
        case 1:
            self.requests += 1
            connection.open.insert(stream)
            if self.refusesAll || connection.open.count > self.limit {
                self.refuse(stream, on: connection)
            } else if self.answers {
                self.answer(stream, on: connection)
            }
        case 3: connection.open.remove(stream)
        case 4 where flags & 1 == 0: connection.peer.send([0, 0, 0, 4, 1, 0, 0, 0, 0])
        case 6 where flags & 1 == 0:
            self.pings += 1
            connection.peer.send([0, 0, 8, 6, 1, 0, 0, 0, 0] + payload)
        default: break
        }
    }

    /// SETTINGS_MAX_CONCURRENT_STREAMS.
    private func sendSettings(_ connection: Connection) {
        connection.peer.send([0, 0, 6, 4, 0, 0, 0, 0, 0] + [0, 3] + Self.four(self.limit))
    }

    /// A head with status 200 that ends the stream.
    private func answer(_ stream: UInt32, on connection: Connection) {
        connection.open.remove(stream)
        connection.peer.send([0, 0, 1, 1, 5] + Self.four(stream) + [0x88])
    }

    private func refuse(_ stream: UInt32, on connection: Connection) {
        connection.open.remove(stream)
        connection.peer.send([0, 0, 4, 3, 0] + Self.four(stream) + [0, 0, 0, 7])
        guard self.leavesAfterRefusal else { return }
        connection.peer.send([0, 0, 8, 7, 0, 0, 0, 0, 0] + [0, 0, 0, 0] + [0, 0, 0, 0])
        connection.peer.finish()
    }

    private static func four(_ number: UInt32) -> [UInt8] { (0..<4).map { UInt8(number >> (24 - 8 * $0) & 0xFF) } }
}
