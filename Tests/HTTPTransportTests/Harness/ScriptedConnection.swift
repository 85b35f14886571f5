import ByteKernels
import SessionTasks
import StreamTransport

/// Performs one connection's script. Confined to the servers' loop.
final class ScriptedConnection: TransportConsumer, @unchecked Sendable {
    private var steps: ArraySlice<RawServer.Step>
    private let log: RawServer.Log
    private let index: Int
    private var isReady = true
    private var isCutting = false
    private var heard: [UInt8] = []
    private var transport: (any Transport)?

    init(_ steps: [RawServer.Step], on transport: any Transport, log: RawServer.Log, index: Int) {
        self.steps = steps[...]
        self.log = log
        self.index = index
        self.transport = transport
        transport.consumer = self
        transport.resumeReading()
        self.run()
    }

    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        let copy = [UInt8](bytes.bytes)
        self.log.add(copy, to: self.index)
        self.heard += copy
        self.run()
        return copy.count
    }

    func inputClosed() {}

    /// The records written before are still being sent.
    func outputProgressed() {
        guard self.isCutting, let lower = (self.transport as? SecureTransport)?.lower else { return }
        self.isCutting = false
        lower.consumer = nil
        lower.close(linger: .seconds(1))
    }

    func transportEnded(_ end: TransportEnd) {
        self.transport = nil
    }

    private func run() {
        while self.isReady, let step = self.steps.first, let transport, self.perform(step, transport) {
            self.steps.removeFirst()
        }
    }

    /// - Returns: whether the step is done.
    private func perform(_ step: RawServer.Step, _ transport: any Transport) -> Bool {
        switch step {
        case .receive(let mark): return self.drop(through: Array(mark.utf8))
        case .receiveBytes(let count):
            guard self.heard.count >= count else { return false }
            self.heard.removeFirst(count)
        case .send(let text): Array(text.utf8).withRawSpan { _ = transport.write($0) }
        case .sendBytes(let bytes): bytes.withRawSpan { _ = transport.write($0) }
        case .finish: transport.shutdownOutput()
        case .close: transport.close(linger: .seconds(1))
        // After the output of this turn.
        case .reset: TestLoops.servers.execute { self.transport?.reset() }
        case .cut:
            self.isCutting = true
            transport.awaitProgress()
        case .open(let gate): gate.open()
        case .wait(let gate):
            self.steps.removeFirst()
            self.isReady = false
            gate.whenOpen {
                TestLoops.servers.execute {
                    self.isReady = true
                    self.run()
                }
            }
            return false
        }
        return true
    }

    private func drop(through mark: [UInt8]) -> Bool {
        guard self.heard.count >= mark.count else { return false }
        for start in 0...(self.heard.count - mark.count) where self.heard[start...].starts(with: mark) {
            self.heard.removeFirst(start + mark.count)
            return true
        }
        return false
    }
}
