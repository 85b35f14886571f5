import StreamTransport
import Testing

@Suite("Threads of the system")
struct SystemThreadTests {
    @Test(arguments: [(-1, 0), (0, 0), (1, 1), (12, 12)])
    func threadsThatTheSystemGivesAreCountedUpToTheNumberWanted(_ wanted: Int, _ available: Int) {
        #expect(SystemThread.availableCount(upTo: wanted) == available)
    }
}
