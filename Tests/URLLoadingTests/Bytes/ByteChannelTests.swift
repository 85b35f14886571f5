import Foundation
import Testing
import URLLoading

@Suite("Channels of received bytes")
struct ByteChannelTests {
    private let calls = ChannelCalls()

    @Test func bytesComeInOrderUntilTheEnd() async throws {
        let channel = self.calls.channel()
        let bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0) }
        for start in stride(from: 0, to: bytes.count, by: 7_001) {
            channel.offer(Data(bytes[start..<min(bytes.count, start + 7_001)]))
        }
        channel.finish(nil)
        var found: [UInt8] = []
        for try await byte in ChannelBytes(channel) { found.append(byte) }
        #expect(found == bytes)
        #expect(self.calls.abandoned == 0)
    }

    @Test func bytesAreAwaited() async throws {
        let channel = self.calls.channel()
        var bytes = ChannelBytes(channel).makeAsyncIterator()
        async let later: Void = {
            for number: UInt8 in 1...3 {
                channel.offer(Data([number]))
                await Task.yield()
            }
            channel.finish(nil)
        }()
        var found: [UInt8] = []
        while let byte = try await bytes.next() { found.append(byte) }
        await later
        #expect(found == [1, 2, 3])
        #expect(try await bytes.next() == nil)
    }

    @Test func channelEndsWithTheFailureAfterReceivedBytes() async throws {
        let channel = self.calls.channel()
        channel.offer(Data([1, 2]))
        channel.finish(URLError(.networkConnectionLost))
        channel.finish(nil)
        var found: [UInt8] = []
        await #expect(throws: URLError(.networkConnectionLost)) {
            for try await byte in ChannelBytes(channel) { found.append(byte) }
        }
        #expect(found == [1, 2])
    }

    @Test func sourcePausesAtTheLimitAndResumesAtHalfOfIt() async throws {
        let channel = self.calls.channel(limit: 300_000)
        let piece = Data(count: 100_000)
        #expect(channel.offer(piece) && channel.offer(piece))
        #expect(!channel.offer(piece))
        var bytes = ChannelBytes(channel).makeAsyncIterator()
        for _ in 0..<100_001 { _ = try await bytes.next() }
        #expect(self.calls.wanted == 1)
        #expect(channel.offer(piece))
        #expect(!channel.offer(piece))
        #expect(self.calls.abandoned == 0)
        _ = try await bytes.next()
    }

    @Test func bytesAreAbandonedWhenTheirReaderGoesAway() async throws {
        let channel = self.calls.channel()
        channel.offer(Data(count: 10))
        let bytes = ChannelBytes(channel)
        for try await _ in bytes { break }
        #expect(self.calls.abandoned == 1)
        // Later bytes are dropped, and the source is not paused for ever.
        #expect(channel.offer(Data(count: 2 << 20)))
        await #expect(throws: URLError(.cancelled)) { for try await _ in bytes {} }
    }

    @Test func channelWithoutAReaderIsAbandoned() {
        do { _ = ChannelBytes(self.calls.channel()) }
        #expect(self.calls.abandoned == 1)
    }

    @Test(arguments: [false, true])
    func bytesAreAbandonedWhenTheirReaderIsCancelled(_ hasBytes: Bool) async {
        let channel = self.calls.channel()
        if hasBytes { channel.offer(Data(count: 5)) }
        let bytes = ChannelBytes(channel)
        let reading = Task {
            var count = 0
            for try await _ in bytes { count += 1 }
            return count
        }
        reading.cancel()
        await #expect(throws: URLError(.cancelled)) { _ = try await reading.value }
        #expect(self.calls.abandoned == 1)
    }

    @Test func cancelledReadDoesNotEndBeforeBytesThatCame() async {
        let channel = self.calls.channel()
        channel.offer(Data([1, 2]))
        channel.finish(nil)
        let bytes = ChannelBytes(channel)
        let reading = Task {
            while !Task.isCancelled { await Task.yield() }
            var count = 0
            for try await _ in bytes { count += 1 }
            return count
        }
        reading.cancel()
        await #expect(throws: URLError(.cancelled)) { _ = try await reading.value }
        #expect(self.calls.abandoned == 0)
    }

    @Test func bytesAreReadOnTheActorThatAwaitsThem() async throws {
        let channel = self.calls.channel()
        channel.offer(Data([1, 2, 3]))
        channel.finish(nil)
        let sum = try await { @MainActor in
            var sum = 0
            for try await byte in ChannelBytes(channel) { sum += Int(byte) }
            return sum
        }()
        #expect(sum == 6)
    }
}
