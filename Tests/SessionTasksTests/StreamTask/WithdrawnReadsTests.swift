import ByteKernels
import SessionTasks
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("Cancelled reads lose no bytes")
struct WithdrawnReadsTests {
    /// The state of one seeded run.
    private final class Run {
        var chance: SeededGenerator
        var received: [UInt8] = []
        var written: [UInt8] = []
        var waiting: [UInt64: Bool] = [:]
        var left: ArraySlice<UInt8>
        var ended = false

        init(seed: UInt64) {
            var chance = SeededGenerator(seed: seed)
            self.left = chance.bytes(20_000)[...]
            self.chance = chance
        }

        /// Does a few things at random: reads, writes, and takes some of them back.
        func step(_ task: StreamTask) {
            for _ in 0..<Int.random(in: 1...4, using: &self.chance) {
                switch Int.random(in: 0..<4, using: &self.chance) {
                case 0, 1: self.read(task)
                case 2: self.write(task)
                default: self.withdraw(task)
                }
            }
        }

        private func read(_ task: StreamTask) {
            let maximum = Int.random(in: 1...2000, using: &self.chance)
            let minimum = Int.random(in: 0...maximum, using: &self.chance)
            var number: UInt64 = 0
            var isOver = false
            number = task.read(minimum: minimum, maximum: maximum, timeout: nil) { result in
                isOver = true
                self.waiting[number] = nil
                guard case .success(let chunk) = result else { return }
                self.received += chunk.bytes
                if chunk.isAtEnd { self.ended = true }
            }
            if !isOver { self.waiting[number] = true }
        }

        private func write(_ task: StreamTask) {
            let piece = Array(self.left.prefix(Int.random(in: 0...3000, using: &self.chance)))
            self.left = self.left.dropFirst(piece.count)
            var number: UInt64 = 0
            var isOver = false
            number = task.write(piece, timeout: nil) { result in
                isOver = true
                self.waiting[number] = nil
                if case .success = result { self.written += piece }
            }
            if !isOver { self.waiting[number] = false }
        }

        private func withdraw(_ task: StreamTask) {
            guard let (number, isRead) = self.waiting.sorted(by: { $0.key < $1.key }).randomElement(using: &self.chance)
            else {
                return
            }
            isRead ? task.withdrawRead(number) : task.withdrawWrite(number)
        }
    }

    @Test(arguments: UInt64(1)...60)
    func everyByteComesOnceAndInItsPlace(_ seed: UInt64) throws {
        var faults = FaultPlan.rough
        faults.reset = 0
        faults.refusedConnect = 0
        faults.hangingConnect = 0
        faults.unreachableConnect = 0
        faults.exhaustion = 0
        let harness = try TaskHarness(.simulation, seed: seed, faults: faults)
        let (task, peer) = try harness.accepted()
        let run = Run(seed: seed)
        let sent = run.chance.bytes(20_000)
        for cut in run.chance.cuts(of: sent.count, longest: 3000) {
            peer.send(Array(sent[cut]))
            harness.perform { run.step(task) }
            _ = harness.testbed.network?.run(for: .milliseconds(Int.random(in: 0...20, using: &run.chance)))
        }
        peer.finish()
        let rest = TaskRecorder()
        harness.perform {
            task.closeWriteOnLoop()
            rest.readAll(task) { run.ended = true }
        }
        #expect(harness.run(atMost: .seconds(120)) { run.ended && peer.sawEnd && run.waiting.isEmpty })
        #expect(run.received + rest.bytes == sent, "seed \(seed)\n\(harness.testbed.report)")
        #expect(peer.received == run.written, "seed \(seed)\n\(harness.testbed.report)")
        harness.finish()
    }
}
