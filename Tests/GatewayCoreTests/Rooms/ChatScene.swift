import GatewayCore
import SessionTasks
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

/// A gateway with chat rooms on two loops, and scripted clients on each.
final class ChatScene {
    private static let routes = """
        listeners:
          - {name: web, listen: "ws://10.1.0.1:1001"}
          - {name: raw, listen: "tcp://10.1.0.1:1002", route: lobby}
        routes:
          - {name: chat, path: "/chat/{room}", target: chat}
          - {name: echo, path: /echo, target: echo}
          - {name: lobby, target: chat, framing: lines}
          - {name: programs, path: /rooms, target: rooms}

        """

    let scene: GatewayScene
    /// Clients that came to a loop other than the wanted one.
    private var others: [ScriptedPeer] = []

    /// - Parameters:
    ///   - turn: duration of a turn of a loop, so that other loops get their turns.
    ///   - receiveBuffer: of the clients' kernel, among others; if it is large enough for a turn, no client is slow.
    init(
        loops: Int = 2, seed: UInt64 = 1, turn: Duration = .microseconds(1), backlog: Int? = nil,
        receiveBuffer: Int = 128 << 10, policies: String = ""
    ) throws {
        var faults = FaultPlan.calm
        faults.turnCost = turn...turn
        faults.receiveBuffer = receiveBuffer...receiveBuffer
        var buffers = RoomBuffers()
        if let backlog { buffers.totalBacklog = backlog }
        self.scene = try GatewayScene(
            Self.routes + "rooms: {command-rate: 1000000\(policies.isEmpty ? "" : ", policies: \(policies)")}\n",
            seed: seed, faults: faults, loops: loops, buffers: buffers)
    }

    var gateway: SimulatedGateway { self.scene.gateway }

    func run(until condition: () -> Bool) -> Bool {
        self.scene.run(until: condition)
    }

    private func clients(on loop: Int, _ route: String) -> [RelayEndpoint] {
        self.gateway.parts[loop].clients(ofRoute: route)
    }

    /// A WebSocket on this loop; the accepting socket is drawn, so several are tried.
    func client(on loop: Int, _ target: String = "/chat/x") throws -> RawWebSocketPeer {
        let path = String(target.prefix { $0 != "?" })
        let route = ["/echo": "echo", "/rooms": "programs"][path] ?? "chat"
        for _ in 0..<64 {
            let before = self.clients(on: loop, route).count
            let peer = try self.scene.webSocketClient(1001, target)
            _ = try #require(self.scene.head(peer))
            if self.clients(on: loop, route).count > before { return peer }
            self.leave(peer.peer)
        }
        throw ChatSceneFailure.loopNotMet
    }

    /// A connection to this loop on which nothing is sent yet.
    func connection(on loop: Int) throws -> RawWebSocketPeer {
        for _ in 0..<64 {
            let before = self.gateway.parts[loop].loop.watchedCount
            let peer = try self.scene.client(1001)
            self.scene.settle()
            if self.gateway.parts[loop].loop.watchedCount > before { return RawWebSocketPeer(peer, isClient: true) }
            peer.reset()
            self.scene.settle()
        }
        throw ChatSceneFailure.loopNotMet
    }

    /// A member of room `lobby` that speaks in lines.
    func stream(on loop: Int) throws -> ScriptedPeer {
        for _ in 0..<64 {
            let before = self.clients(on: loop, "lobby").count
            let all = self.gateway.liveCount
            let peer = try self.scene.client(1002)
            #expect(self.run { self.gateway.liveCount > all })
            self.scene.settle()
            if self.clients(on: loop, "lobby").count > before { return peer }
            self.leave(peer)
        }
        throw ChatSceneFailure.loopNotMet
    }

    private func leave(_ peer: ScriptedPeer) {
        let before = self.gateway.liveCount
        peer.reset()
        #expect(self.run { self.gateway.liveCount < before })
    }

    /// The gateway's task of the client that came to this loop last.
    func task(on loop: Int, route: String = "chat") throws -> RelayEndpoint {
        try #require(self.clients(on: loop, route).last)
    }

    func sentMessages(on loop: Int, route: String = "chat") -> UInt64 {
        self.clients(on: loop, route).reduce(0) { $0 + $1.task.record.messagesSent }
    }

    /// Runs until nothing happens at one instant any more, with a stalled loop.
    func runFor(_ duration: Duration) {
        _ = self.scene.network.run(for: duration)
    }
}

enum ChatSceneFailure: Error {
    case loopNotMet
}
