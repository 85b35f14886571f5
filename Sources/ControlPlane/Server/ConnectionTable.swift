import GatewayCore
import NIOCore
import StreamTransport

/// The connections of the control plane, and the place of each among them. Confined to the one event loop of the server.
final class ConnectionTable: @unchecked Sendable {
    private let eventLoop: any EventLoop
    private var places: ConnectionPlaces
    private var channels: [UInt64: any Channel] = [:]
    private var last: UInt64 = 0

    /// - Parameter limit: connections at once; fewer where the process has few descriptors.
    init(on eventLoop: any EventLoop, limit: Int, clientLimit: Int) {
        self.eventLoop = eventLoop
        self.places = ConnectionPlaces(limit: limit, clientLimit: clientLimit)
    }

    /// Other limits from now on; nobody is closed before the next newcomer. From any thread.
    func set(limit: Int, clientLimit: Int) {
        self.eventLoop.execute {
            self.places.limit = limit
            self.places.clientLimit = clientLimit
        }
    }

    /// Gives an accepted connection a place, for which another may be closed.
    /// - Throws: where there is none; the channel is then closed.
    func add(_ channel: any Channel) throws -> ConnectionPlace {
        self.eventLoop.assertInEventLoop()
        self.last += 1
        let identifier = self.last
        let answer = self.places.arrived(identifier, from: Self.client(channel.remoteAddress))
        switch answer {
        case .refused: throw ChannelError.connectPending
        case .taken(let closing), .takenForProbes(let closing):
            if let closing { self.channels.removeValue(forKey: closing)?.close(promise: nil) }
        }
        self.channels[identifier] = channel
        channel.closeFuture.assumeIsolated().whenComplete { _ in self.remove(identifier) }
        let isForProbes = if case .takenForProbes = answer { true } else { false }
        return ConnectionPlace(identifier, in: self, isForProbes: isForProbes)
    }

    private func remove(_ identifier: UInt64) {
        self.channels[identifier] = nil
        self.places.left(identifier)
    }

    /// From any thread.
    func began(_ identifier: UInt64) {
        self.eventLoop.execute { self.places.began(identifier) }
    }

    func answered(_ identifier: UInt64) {
        self.eventLoop.execute { self.places.answered(identifier) }
    }

    /// An IPv4 address, or the network of an IPv6 one: whoever has one address of a /64 has them all.
    private static func client(_ address: NIOCore.SocketAddress?) -> String? {
        guard let text = address?.ipAddress else { return nil }
        guard case .ipv6(let high, let low, _, _)? = StreamTransport.SocketAddress(literal: text, port: 0) else {
            return text
        }
        return high == 0 ? "\(low)" : "\(high)/64"
    }
}
