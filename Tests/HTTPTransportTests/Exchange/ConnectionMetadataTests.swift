import HTTPTransport
import SessionTasks
import StreamTransport
import Testing

@Suite("Connection metadata and timings")
struct ConnectionMetadataTests {
    @Test func addressesAreNumeric() {
        var metadata = ConnectionMetadata()
        metadata.localAddress = .unix(path: "")
        metadata.peerAddress = .unix(path: "/run/server")
        #expect(metadata.localHost == nil && metadata.localPort == nil)
        #expect(metadata.peerHost == nil && metadata.peerPort == nil)
        metadata.peerAddress = .ipv4(address: 0xC000_0201, port: 443)
        #expect(metadata.peerHost == "192.0.2.1" && metadata.peerPort == 443)
    }

    /// The times that are set, in the order of `ConnectTimings`.
    private func times(_ timings: ConnectTimings) -> [Bool] {
        [
            timings.lookupStart, timings.lookupEnd, timings.connectStart, timings.secureStart, timings.secureEnd,
            timings.connectEnd,
        ].map { $0 != nil }
    }

    @Test func everyStepSetsItsTime() {
        var named = ConnectTimings(to: .host("server.test", port: 443))
        #expect(self.times(named) == [true, false, false, false, false, false])
        named.record(.resolved)
        #expect(self.times(named) == [true, true, true, false, false, false])
        #expect(named.lookupEnd == named.connectStart)
        named.record(.connected(local: nil, peer: nil))
        #expect(self.times(named) == [true, true, true, false, false, true])
        // Connecting ends with the handshake.
        named.record(.securing)
        #expect(self.times(named) == [true, true, true, true, false, false])
        named.record(.failed(.reset))
        #expect(self.times(named) == [true, true, true, true, false, false])
    }

    @Test(arguments: [ConnectTarget.host("192.0.2.1", port: 80), .host("::1", port: 80), .address(.unix(path: "/a"))])
    func addressNeedsNoLookup(_ target: ConnectTarget) {
        #expect(self.times(ConnectTimings(to: target)) == [false, false, true, false, false, false])
    }

    @Test func failedLookupEndsWithoutConnecting() {
        var timings = ConnectTimings(to: .host("server.test", port: 80))
        timings.record(.failed(.deadlinePassed(.resolving)))
        #expect(self.times(timings) == [true, false, false, false, false, false])
        timings.record(.failed(.nameResolution(.nameNotFound)))
        #expect(self.times(timings) == [true, true, false, false, false, false])
    }
}
