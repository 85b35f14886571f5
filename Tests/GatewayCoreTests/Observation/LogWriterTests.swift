import GatewayCore
import StreamTransport
import Synchronization
import Testing

@Suite("The log's writer and its reader")
struct LogWriterTests {
    /// Takes lines only once it is let, as a reader that sleeps.
    private final class SlowReader: Sendable {
        private let state = Mutex((isAwake: false, taken: [UInt8]()))

        func take(_ bytes: [UInt8]) {
            while !self.state.withLock({ $0.isAwake }) { SystemThread.sleep(for: .milliseconds(1)) }
            self.state.withLock { $0.taken += bytes }
        }

        func wake() {
            self.state.withLock { $0.isAwake = true }
        }

        var lines: [Substring] {
            self.state.withLock { String(decoding: $0.taken, as: UTF8.self) }.split(separator: "\n")
        }
    }

    @Test func everyLineIsWrittenInOrder() {
        let reader = SlowReader()
        reader.wake()
        let writer = LogWriter { reader.take($0) }
        for number in 0..<1_000 { writer.log("line \(number)") }
        #expect(writer.flush(within: .seconds(240)))
        #expect(reader.lines == (0..<1_000).map { "line \($0)" })
    }

    @Test func linesForWhichThereWasNoThreadAreWrittenAtTheEnd() {
        let reader = SlowReader()
        reader.wake()
        let writer = LogWriter(write: { reader.take($0) }, startThread: { _ in false })
        writer.log("one")
        writer.log("two")
        #expect(reader.lines == [])
        #expect(writer.flush())
        #expect(reader.lines == ["one", "two"])
    }

    @Test func linesForWhichThereWasNoThreadAreWrittenWithTheNextOnes() {
        let reader = SlowReader()
        reader.wake()
        let hasThread = Mutex(false)
        let writer = LogWriter(
            write: { reader.take($0) },
            startThread: { body in
                guard hasThread.withLock({ $0 }) else { return false }
                body()
                return true
            })
        writer.log("one")
        hasThread.withLock { $0 = true }
        writer.log("two")
        #expect(reader.lines == ["one", "two"])
    }

    @Test func theEndDoesNotWaitForAReaderThatSleeps() {
        let reader = SlowReader()
        let writer = LogWriter { reader.take($0) }
        writer.log("nobody reads this")
        let start = ContinuousClock.now
        #expect(!writer.flush(within: .milliseconds(50)))
        #expect(start.duration(to: .now) < .seconds(10))
        reader.wake()
        #expect(writer.flush(within: .seconds(240)))
        #expect(reader.lines == ["nobody reads this"])
    }

    @Test func linesBeyondTheLimitAreDroppedCountedAndReported() {
        let reader = SlowReader()
        let writer = LogWriter(write: { reader.take($0) }, notice: { "dropped \($0)" })
        let line = String(repeating: "x", count: 1 << 16)
        for _ in 0..<200 { writer.log(line) }
        let dropped = writer.lost.load(ordering: .relaxed)
        // The thread may have taken a part before the rest came.
        #expect(dropped >= 200 - 2 * (LogWriter.limit / (1 << 16) + 1) && dropped < 200)
        reader.wake()
        #expect(writer.flush(within: .seconds(240)))
        let lines = reader.lines
        #expect(lines.count { $0.hasPrefix("x") } == 200 - dropped)
        #expect(lines.filter { !$0.hasPrefix("x") } == ["dropped \(dropped)"])
    }
}
