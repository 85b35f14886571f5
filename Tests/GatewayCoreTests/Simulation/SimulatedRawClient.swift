import StreamTransport
import TestSupport

/// A byte-stream client of a simulated load: says its bytes in pieces, and ends the way that was drawn for it.
final class SimulatedRawClient {
    enum Ending: CaseIterable {
        /// Finishes sending and waits for the other end.
        case finishes
        case resets
        /// Says nothing more and waits.
        case lingers
    }

    let peer: ScriptedPeer
    let sent: [UInt8]
    let ending: Ending
    /// What the other end is to say; `nil` if it says back what it hears.
    let expected: [UInt8]?
    private var cuts: ArraySlice<Range<Int>>
    private(set) var hasEnded = false

    init(_ peer: ScriptedPeer, expecting expected: [UInt8]?, using chance: inout SeededGenerator) {
        self.peer = peer
        self.expected = expected
        self.sent = chance.bytes(Int.random(in: 0...30_000, using: &chance))
        self.ending =
            Int.random(in: 0..<10, using: &chance) < 7 ? .finishes : Bool.random(using: &chance) ? .resets : .lingers
        self.cuts = chance.cuts(of: self.sent.count, longest: 9000)[...]
        peer.readLimit = Int.random(in: 1...20_000, using: &chance)
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

    /// What is wrong with what this client saw; `nil` if nothing is.
    var complaint: String? {
        let whole = self.expected ?? self.sent
        guard whole.starts(with: self.peer.received) else { return "heard what was never said" }
        guard self.peer.sawEnd, self.peer.failure == nil else { return nil }
        if self.peer.received.count < whole.count {
            return "saw a clean end after \(self.peer.received.count) of \(whole.count)"
        }
        if self.expected == nil, self.ending != .finishes { return "saw a clean end though it never finished" }
        return nil
    }
}
