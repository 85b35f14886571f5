import GatewayCore
import Testing

@Suite("Event log")
struct EventLogTests {
    private func journal(of count: Int, limit: Int = 4) -> EventLog {
        let journal = EventLog(limit: limit)
        for _ in 0..<count { journal.publish(GatewayEvent(.opened)) }
        return journal
    }

    @Test func eventNumbersHaveNoGaps() {
        let batch = self.journal(of: 3).events(after: 0)
        #expect(batch.events.map(\.number) == [1, 2, 3])
        #expect(batch.missed == nil)
    }

    @Test func eventsAfterANumberAreReturned() {
        let journal = self.journal(of: 3)
        #expect(journal.events(after: 2).events.map(\.number) == [3])
        #expect(journal.events(after: 3).events.isEmpty)
        #expect(journal.events(after: 0, count: 2).events.map(\.number) == [1, 2])
    }

    @Test func eventIsEncodedOnceForAllFollowers() {
        let journal = self.journal(of: 2)
        var count: UInt8 = 0
        let texts = (0..<3).flatMap { _ in
            journal.events(after: 0).events.map { event in
                event.encoding.text {
                    count += 1
                    return [count]
                }
            }
        }
        #expect(texts == [[1], [2], [1], [2], [1], [2]])
    }

    @Test func droppedEventsAreAGap() {
        let journal = self.journal(of: 10)
        let batch = journal.events(after: 2)
        #expect(batch.missed == 3...6)
        #expect(batch.events.map(\.number) == [7, 8, 9, 10])
        #expect(journal.events(after: 6).missed == nil)
    }

    @Test func numberFromAnotherProcessIsAGap() {
        let batch = self.journal(of: 2).events(after: 7)
        #expect(batch.missed == 7...7)
        #expect(batch.events.isEmpty)
    }

    @Test func newEventWakesWaitingReaders() async {
        let journal = self.journal(of: 1)
        async let waited = journal.wait(after: 1)
        journal.publish(GatewayEvent(.closed))
        #expect(await waited == true)
        #expect(await journal.wait(after: 1) == true)
    }

    @Test func cancelledReaderReturns() async {
        let journal = self.journal(of: 1)
        let waiting = Task { await journal.wait(after: 1) }
        waiting.cancel()
        #expect(await waiting.value == nil)
    }

    @Test func closingWakesWaitingReaders() async {
        let journal = self.journal(of: 1)
        async let waited = journal.wait(after: 1)
        journal.close()
        #expect(await waited == false)
    }

    @Test func eventsBeforeTheCloseAreReturned() async {
        let journal = self.journal(of: 2)
        journal.close()
        #expect(await journal.wait(after: 1) == true)
        #expect(await journal.wait(after: 2) == false)
    }

    @Test func floodIsReportedOnce() {
        let journal = EventLog()
        for _ in 0..<100 { journal.limitHit("client-limit", listener: "web") }
        journal.limitHit("accept-rate", listener: "web")
        #expect(journal.events(after: 0).events.map(\.reason) == ["client-limit", "accept-rate"])
    }
}
