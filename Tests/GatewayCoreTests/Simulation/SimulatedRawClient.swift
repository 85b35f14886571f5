import StreamTransport
import TestSupport

/// A byte-stream client of a simulated load: sends its bytes in pieces, and ends in a randomly drawn way.
final class SimulatedRawClient {
    enum EndMode {
        /// Finishes sending and waits for the other end.
        case finishes
        case resets
        /// Sends nothing more and waits.
        case lingers
    }

    let peer: ScriptedPeer
    let door: LoadListener
    let sent: [UInt8]
    let ending: EndMode
    private var cuts: ArraySlice<Range<Int>>
    private(set) var hasEnded = false

    /// - Parameter tag: the first bytes sent, by which a sink identifies the client.
    init(_ peer: ScriptedPeer, at door: LoadListener, tag: [UInt8], using chance: inout SeededGenerator) {
        self.peer = peer
        self.door = door
        self.sent = (door.rudeWords ?? tag) + chance.bytes(Int.random(in: 0...30_000, using: &chance))
        self.ending =
            Int.random(in: 0..<10, using: &chance) < 7 ? .finishes : Bool.random(using: &chance) ? .resets : .lingers
        self.cuts = chance.cuts(of: self.sent.count, longest: 9000)[...]
        peer.readLimit = Int.random(in: 8...20_000, using: &chance)
    }

    /// Does the next thing.
    func step(using chance: inout SeededGenerator) {
        guard self.peer.isConnected, !self.peer.isClosed, self.peer.failure == nil, !self.hasEnded else { return }
        self.peer.isReading = Int.random(in: 0..<8, using: &chance) > 0
        if let cut = self.cuts.popFirst() { return self.peer.send(Array(self.sent[cut])) }
        self.hasEnded = true
        self.peer.isReading = true
        switch self.ending {
        case .finishes: self.peer.finish()
        case .resets: self.peer.reset()
        case .lingers: break
        }
    }

    private var sawCleanEnd: Bool {
        self.peer.sawEnd && self.peer.failure == nil
    }

    /// Whether this client received everything expected.
    var isContent: Bool {
        guard self.ending == .finishes, self.door.promise != .nothing else { return true }
        return (self.sawCleanEnd || self.door.promise == .bytes)
            && self.peer.received.count == self.door.answer(to: self.sent).count
    }

    /// The state of this client, for the message of a failure.
    var lot: String {
        "got \(self.peer.received.count) of \(self.door.answer(to: self.sent).count) bytes, "
            + "end \(self.peer.sawEnd), failure \(String(describing: self.peer.failure))"
    }

    /// The violation in the bytes that this client received; `nil` if there is none.
    var complaint: String? {
        guard self.door.rudeWords == nil else { return nil }
        return self.door.answer(to: self.sent).starts(with: self.peer.received) ? nil : "heard what was never said"
    }

    /// The violation in the end that this client saw; `nil` if there is none, or no end.
    var complaintAboutEnd: String? {
        guard self.sawCleanEnd, self.door.rudeWords == nil else { return nil }
        let whole = self.door.answer(to: self.sent).count
        if self.peer.received.count < whole { return "saw a clean end after \(self.peer.received.count) of \(whole)" }
        if self.door.far != .source, !(self.hasEnded && self.ending == .finishes) {
            return "saw a clean end though it never finished"
        }
        return nil
    }
}
