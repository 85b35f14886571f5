import HTTPTransport
import StreamTransport
import Synchronization
import TLSEngine
import Testing
import URLLoading
import WireText

@Suite("Executor of a session's loads")
struct SessionExecutorTests {
    private let executor = SessionExecutor(PoolSettings())

    /// Runs `work` on the executor and waits for it.
    private func perform<Answer: Sendable>(_ work: @escaping @Sendable (SessionExecutor) -> Answer) async -> Answer {
        await withCheckedContinuation { continuation in
            self.executor.executeLater { [executor] in continuation.resume(returning: work(executor)) }
        }
    }

    @Test func workNeedsNoPool() async {
        #expect(!self.executor.isCurrent)
        #expect(await self.perform { $0.isCurrent })
        #expect(self.executor.pool == nil)
    }

    @Test func workIsOnTheLoopOfThePoolOnceThatIsMade() async throws {
        let foundAtOnce = await self.perform { $0.makePool() && $0.pool != nil && $0.isCurrent }
        #expect(!foundAtOnce)
        #expect(await self.perform { $0.isCurrent && $0.pool?.loop.isCurrent == true && $0.makePool() })
        #expect(!self.executor.isCurrent)
    }

    @Test func nestedWorkRunsImmediatelyUnlessDeferred() async {
        for _ in 0..<2 {
            let order = Mutex<[String]>([])
            await self.perform { executor in
                executor.executeLater { order.withLock { $0.append("later") } }
                executor.execute { order.withLock { $0.append("immediate") } }
            }
            _ = await self.perform { $0.makePool() }
            #expect(order.withLock { $0 } == ["immediate", "later"])
        }
    }

    @Test func workThatMakesThePoolKeepsItsPlace() async {
        let order = Mutex<[String]>([])
        await self.perform { executor in
            executor.executeLater { order.withLock { $0.append("waited") } }
            _ = executor.makePool { order.withLock { $0.append("continued") } }
        }
        // After all other work.
        _ = await self.perform { $0.isCurrent }
        #expect(order.withLock { $0 } == ["continued", "waited"])
    }

    private final class CallLog: Sendable {
        private let numbers: Mutex<[[Int]]>
        private let isBusy = Atomic(false)
        private let overlaps = Atomic(0)

        init(threads: Int) { self.numbers = Mutex(Array(repeating: [], count: threads)) }

        func add(_ number: Int, of thread: Int) {
            if self.isBusy.exchange(true, ordering: .acquiringAndReleasing) { self.overlaps.add(1, ordering: .relaxed) }
            self.numbers.withLock { $0[thread].append(number) }
            self.isBusy.store(false, ordering: .releasing)
        }

        var all: [[Int]] { self.numbers.withLock { $0 } }
        var overlapCount: Int { self.overlaps.load(ordering: .relaxed) }
    }

    /// Runs while the executor moves to the loop.
    @Test(.timeLimit(.minutes(5)))
    func workOfManyThreadsStaysInOrderAndNeverOverlaps() async {
        let (threads, count) = (8, 2_000)
        let (executor, journal) = (self.executor, CallLog(threads: threads))
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<threads {
                group.addTask {
                    for number in 0..<count {
                        executor.executeLater {
                            journal.add(number, of: thread)
                            if thread == 0, number == count / 2 { _ = executor.makePool() }
                        }
                    }
                }
            }
        }
        // After all other work.
        #expect(await self.perform { $0.isCurrent })
        #expect(journal.overlapCount == 0)
        #expect(journal.all == Array(repeating: Array(0..<count), count: threads))
    }

    @Test func poolOfAClosedExecutorRefusesExchanges() async {
        self.executor.close()
        _ = await self.perform { $0.makePool() }
        let end = await withCheckedContinuation { continuation in
            self.executor.executeLater { [executor] in
                let consumer = EndConsumer { continuation.resume(returning: $0) }
                let request = ExchangeRequest(ServerEndpoint(.http, host: "127.0.0.1", port: 1))
                executor.pool?.exchange(request, consumer: consumer).start()
            }
        }
        guard case .failed(.poolClosed) = end else { return #expect(Bool(false), "\(end)") }
    }
}

/// Reports only the end of an exchange.
private final class EndConsumer: ExchangeConsumer {
    private let report: @Sendable (ExchangeEnd) -> Void

    init(_ report: @escaping @Sendable (ExchangeEnd) -> Void) { self.report = report }

    var demand: ContentDemand { .bytes(.max) }
    func connectionReady(_ metadata: ConnectionMetadata) {}
    func verificationRequested(
        _ request: VerificationRequest, answer: @escaping @Sendable (VerificationDecision) -> Void
    ) {
        answer(.reject)
    }
    func identityRequested(issuers: [[UInt8]], answer: @escaping @Sendable (TLSIdentity?) -> Void) { answer(nil) }
    func bodySent(_ count: Int) {}
    func informationalHeadReceived(_ head: ResponseHead) {}
    func headReceived(_ head: ResponseHead, framing: ResponseFraming) {}
    func contentReceived(_ bytes: RawSpan) {}
    func exchangeEnded(_ end: ExchangeEnd, metrics: ExchangeMetrics) { self.report(end) }
}
