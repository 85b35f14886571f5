import Foundation
import TestSupport

/// A WebSocket in one room that speaks no protocol: it notes the numbers that it receives, connection by connection.
final class ClusterPlainMember {
    /// What one connection sent and received.
    struct Stay {
        var sent: Set<Int> = []
        var received: [Int] = []
    }

    let name: String
    let room: String
    private var peer: RawWebSocketPeer?
    private var framesRead = 0
    private(set) var stays: [Stay] = []
    private(set) var counts: [String: Int] = [:]
    private(set) var complaints: [String] = []

    init(name: String, room: String) {
        self.name = name
        self.room = room
    }

    var isConnected: Bool { self.peer != nil }

    func connect(_ peer: RawWebSocketPeer) {
        self.peer = peer
        self.framesRead = 0
        self.stays.append(Stay())
        peer.peer.send(RawWebSocketPeer.request(to: "/chat/\(self.room)"))
    }

    /// - Returns: whether the member has a connection to publish on.
    func publish(_ number: Int) -> Bool {
        guard let peer = self.peer, peer.hasHead else { return false }
        peer.send(1, #"{"n":\#(number)}"#)
        self.stays[self.stays.count - 1].sent.insert(number)
        return true
    }

    /// Begins the closing handshake.
    func sendClose() { self.peer?.send(8, [0x03, 0xE8]) }

    /// What it has read before the loss counts as received.
    func vanish() {
        self.read()
        self.peer?.peer.reset()
        self.peer = nil
    }

    func read() {
        guard let peer = self.peer else { return }
        if peer.readHead() {
            let frames = peer.frames
            for frame in frames.dropFirst(self.framesRead) { self.read(frame, peer) }
            self.framesRead = frames.count
        }
        guard peer.peer.sawEnd || peer.peer.failure != nil || peer.peer.isClosed || peer.hasHead && peer.close != nil
        else { return }
        if let close = peer.close, close.count > 2 {
            self.counts["plain closed: \(String(decoding: close.dropFirst(2), as: UTF8.self))", default: 0] += 1
        }
        peer.peer.close()
        self.peer = nil
    }

    private func read(_ frame: RawWebSocketPeer.Frame, _ peer: RawWebSocketPeer) {
        switch frame.opcode {
        case 1:
            let value = try? JSONSerialization.jsonObject(with: Data(frame.payload)) as? [String: Any]
            guard let number = value?["n"] as? Int else {
                let text = String(decoding: frame.payload, as: UTF8.self)
                return self.complaints.append("member \(self.name) got \(text)")
            }
            self.counts["plain received", default: 0] += 1
            self.stays[self.stays.count - 1].received.append(number)
        case 9: peer.send(10, frame.payload)
        default: break
        }
    }

    // MARK: Judging

    /// Checks that each connection received messages once, in the room's order, and all between the first and the last.
    /// - Parameters:
    ///   - order: all messages of the room that were stored: their numbers, and the epochs that they got.
    ///   - missing: those that were removed or lost.
    func judge(_ order: [(number: Int, epoch: String)], missing: Set<Int>) {
        // A publication that Redis lost may be stored again.
        var places: [Int: [Int]] = [:]
        for (index, stored) in order.enumerated() { places[stored.number, default: []].append(index) }
        for (stay, index) in zip(self.stays, 0...) {
            var last: Int?
            for number in stay.received {
                if stay.sent.contains(number) { self.complain(index, "got its own \(number)") }
                guard let place = places[number]?.first(where: { $0 > last ?? -1 }) else {
                    self.complain(index, "got \(number) after \(last.map { "\(order[$0].number)" } ?? "nothing")")
                    continue
                }
                if let last { self.judgeGap(order, last, place, stay, missing, index) }
                last = place
            }
        }
    }

    /// A stream that began anew, or lost what a node does not have yet, cannot be complete for a member without a position.
    private func judgeGap(
        _ order: [(number: Int, epoch: String)], _ last: Int, _ place: Int, _ stay: Stay, _ missing: Set<Int>,
        _ index: Int
    ) {
        guard last + 1 < place, order[last].epoch == order[place].epoch else { return }
        let skipped = order[(last + 1)..<place].map(\.number)
        guard !skipped.contains(where: missing.contains) else { return }
        let lost = skipped.filter { !stay.sent.contains($0) }
        if !lost.isEmpty {
            self.complain(index, "got \(order[place].number) after \(order[last].number), but not \(lost)")
        }
    }

    private func complain(_ stay: Int, _ text: String) {
        self.complaints.append("plain member \(self.name) in \(self.room), connection \(stay): \(text)")
    }
}
