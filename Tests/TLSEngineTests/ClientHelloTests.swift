import TLSEngine
import TestSupport
import Testing

@Suite("Parsing a ClientHello, RFC 8446 §4.1.2")
struct ClientHelloTests {
    @Test(arguments: ClientHelloVector.all)
    func requestsOfAClientHelloAreRead(_ vector: ClientHelloVector) {
        #expect(self.findings(vector.record, cuts: [vector.record.count]) == [.clientHello(vector.hello)])
        #expect(
            self.findings(vector.record + [0x16, 0x03], cuts: [vector.record.count + 2]) == [.clientHello(vector.hello)]
        )
    }

    @Test(arguments: ClientHelloVector.all)
    func clientHelloIsIncompleteUntilItsLastByte(_ vector: ClientHelloVector) {
        let findings = self.findings(vector.record, cuts: Array(0...vector.record.count))
        #expect(findings.dropLast().allSatisfy { $0 == .incomplete })
        #expect(findings.last == .clientHello(vector.hello))
    }

    /// RFC 8446 §5.1: a message may be fragmented across records in any way.
    @Test(arguments: ClientHelloVector.all, [1, 2, 100])
    func messageIsAssembledFromSeveralRecords(_ vector: ClientHelloVector, _ size: Int) {
        let message = Array(vector.record.dropFirst(5))
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: message.count, by: size) {
            let part = message[start..<min(start + size, message.count)]
            bytes += [0x16, 0x03, 0x03, 0, UInt8(part.count)] + part
        }
        #expect(self.findings(bytes, cuts: Array(0...bytes.count)).last == .clientHello(vector.hello))
    }

    @Test(arguments: [
        Array("GET / HTTP/1.1\r\n".utf8), [0x00], [0x80, 0x2E, 0x01, 0x03, 0x01], [0x16, 0x02], [0x17, 0x03, 0x03],
        [0x0D, 0x0A],
    ])
    func plainBytesAreKnownByTheFirstOrSecond(_ bytes: [UInt8]) {
        #expect(self.findings(bytes, cuts: [0, bytes.count]) == [.incomplete, .plain])
    }

    @Test func firstByteDecidesOnlyForPlaintext() {
        #expect(self.findings([0x16, 0x03], cuts: [0, 1, 2]) == [.incomplete, .incomplete, .incomplete])
    }

    @Test(
        arguments: [
            // An empty record, one that is too long, another message, another record type in between.
            [0x16, 3, 1, 0, 0], [0x16, 3, 1, 0x40, 0x01], [0x16, 3, 1, 0, 4, 2, 0, 0, 0],
            [0x16, 3, 1, 0, 1, 1, 0x17, 3, 3, 0, 1, 0],
            // A ClientHello without a body, and one longer than the parser reads.
            [0x16, 3, 1, 0, 4, 1, 0, 0, 0], [0x16, 3, 1, 0, 4, 1, 0, 0x40, 1],
        ] as [[UInt8]])
    func malformedClientHelloIsReported(_ bytes: [UInt8]) {
        #expect(self.findings(bytes, cuts: Array(0...bytes.count)).last == .unreadable)
    }

    @Test func inspectionStopsAtItsLimit() {
        let vector = ClientHelloVector.all[0]
        let body = vector.record.count - 9
        var within = ClientHelloSniffer(limit: body)
        var beyond = ClientHelloSniffer(limit: body - 1)
        #expect(within.examine(vector.record.span.bytes) == .clientHello(vector.hello))
        #expect(beyond.examine(vector.record.span.bytes) == .unreadable)
    }

    @Test func findingIsKept() {
        var sniffer = ClientHelloSniffer()
        let vector = ClientHelloVector.all[0]
        #expect(sniffer.examine([0x00].span.bytes) == .plain)
        #expect(sniffer.examine(vector.record.span.bytes) == .plain)
    }

    /// Any bytes give the same result in every split, without a trap.
    @Test(arguments: UInt64(0)..<32)
    func theSplitDoesNotMatter(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<100 {
            var bytes = ClientHelloVector.all.randomElement(using: &generator)?.record ?? []
            for _ in 0..<Int.random(in: 0...4, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            bytes.removeLast(Int.random(in: 0..<20, using: &generator))
            let whole = self.findings(bytes, cuts: [bytes.count])
            let cuts = generator.cuts(of: bytes.count, longest: 40).map(\.upperBound)
            #expect(self.findings(bytes, cuts: cuts).last == whole.last, "seed \(seed): \(bytes)")
        }
    }

    private func findings(_ bytes: [UInt8], cuts: [Int]) -> [ClientHelloSniffer.Detection] {
        var sniffer = ClientHelloSniffer()
        return cuts.map { end in
            let prefix = Array(bytes[..<end])
            return sniffer.examine(prefix.span.bytes)
        }
    }
}
