import TLSEngine
import TestSupport
import Testing

@Suite("Records after the handshake, RFC 8446 §5")
struct CompactRecordLayerTests {
    @Test func recordsOfTheExampleAreOpenedAndWritten() throws {
        let (client, server) = (RecordVector.fromClient, RecordVector.fromServer)
        func make() throws -> CompactRecordLayer {
            let reading = RecordKey.make(.aes128GCM, secret: SecretBytes(client.secret), use: .opening)
            let writing = RecordKey.make(
                .aes128GCM, secret: SecretBytes(server.secret), use: .sealing, sequence: server.sequence)
            guard let reading, let writing else { throw RecordEnd.CreationFailure() }
            return CompactRecordLayer(reading: reading, writing: writing)
        }
        let records = try make()
        var plaintext = [UInt8](repeating: 0, count: 100)
        var position = 0
        let wire = client.data + client.closeNotify
        var events: [RecordEvent] = []
        for _ in 0..<2 {
            var span = plaintext.mutableSpan
            var room = span.mutableBytes
            records.nextEvent(wire.span.bytes, at: &position, plaintext: &room).map { events.append($0) }
            if events.count == 1 { #expect(Array(plaintext[..<50]) == RecordVector.payload) }
        }
        #expect(events == [.plaintext(count: 50), .closed])
        let output = CiphertextBuffer()
        let payload = RecordVector.payload
        let isWritten = records.write(payload.span.bytes, to: output)
        #expect(isWritten && records.writeCloseNotify(to: output))
        #expect(output.take { bytes in bytes.withUnsafeBytes { Array($0) } } == server.data + server.closeNotify)
    }

    @Test(arguments: RecordScript.rightOnes)
    func validRecordIsDecrypted(_ script: RecordScript) throws {
        for suite in RecordSuite.allCases { try self.expect(script, suite) }
    }

    @Test(arguments: RecordScript.wrongOnes)
    func invalidRecordIsRefused(_ script: RecordScript) throws {
        for suite in RecordSuite.allCases { try self.expect(script, suite) }
    }

    private func expect(_ script: RecordScript, _ suite: RecordSuite) throws {
        let wire = try script.wire(suite)
        let ends = try (0..<200).map { _ in try RecordEnd(suite) }
        var used = 0
        try expectDecodes(wire, to: script.seen, followedBy: [0x17, 3, 3]) {
            let end = ends[used]
            used += 1
            return { end.feed($0) }
        }
    }

    @Test(arguments: RecordSuite.allCases)
    func everyModificationIsDetected(_ suite: RecordSuite) throws {
        let wire = try RecordScript("", [RecordScript.data(1, 2, 3)], []).wire(suite)
        for bit in 40..<(wire.count * 8) {
            var changed = wire
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(try RecordEnd(suite).feed(changed) == [.failed(.peer(.badRecordMAC))], "bit \(bit)")
        }
        // The version is ignored but authenticated.
        for index in 1...2 {
            var changed = wire
            changed[index] ^= 1
            #expect(try RecordEnd(suite).feed(changed) == [.failed(.peer(.badRecordMAC))])
        }
    }

    @Test(arguments: RecordSuite.allCases, [1, 3, 1000])
    func contentIsReadInPartsIntoASmallBuffer(_ suite: RecordSuite, _ room: Int) throws {
        let sent = (0..<3000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let end = try RecordEnd(suite)
        let seen = end.feed(try RecordEnd.other(suite).write(sent), room: room)
        #expect(seen.count == (3000 + room - 1) / room)
        #expect(seen.flatMap { if case .bytes(let bytes) = $0 { bytes } else { [UInt8]() } } == sent)
    }

    @Test(arguments: RecordSuite.allCases)
    func aKeyUpdateIsAnsweredOnceBeforeTheNextData(_ suite: RecordSuite) throws {
        let asking = [RecordScript.message(24, 0, 0, 1, 1), .newKey]
        let end = try RecordEnd(suite)
        #expect(end.feed(try RecordScript("", asking + asking, []).wire(suite)) == [])
        let client = try RecordEnd.other(suite)
        let first = end.write([1])
        #expect(self.lengths(first) == [5 + 17, 1 + 17])
        let second = end.write([2])
        #expect(self.lengths(second) == [1 + 17])
        #expect(client.feed(first + second) == [.bytes([1]), .bytes([2])])
    }

    @Test(arguments: RecordSuite.allCases)
    func aKeyMakesWayForTheNextBeforeItIsWornOut(_ suite: RecordSuite) throws {
        let end = try RecordEnd(suite, recordsPerKey: 3)
        let client = try RecordEnd.other(suite)
        var updates = 0
        for number in UInt8(0)..<100 {
            let wire = end.write([number])
            updates += self.lengths(wire).count - 1
            #expect(client.feed(wire) == [.bytes([number])])
        }
        #expect(updates == 33)
    }

    /// Data in pieces of any size, with key updates from both sides.
    @Test(arguments: RecordSuite.allCases, UInt64(0)..<4)
    func anySplitGivesTheSameBytes(_ suite: RecordSuite, _ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let sender = try RecordEnd(suite, reading: RecordEnd.mine, writing: RecordEnd.theirs, recordsPerKey: 2)
        let end = try RecordEnd(suite)
        let sent = generator.bytes(100_000)
        var wire: [UInt8] = []
        for cut in generator.cuts(of: sent.count, longest: 40_000) { wire += sender.write(Array(sent[cut])) }
        var received: [UInt8] = []
        for cut in generator.cuts(of: wire.count, longest: Bool.random(using: &generator) ? 50 : 30_000) {
            for seen in end.feed(Array(wire[cut]), room: Int.random(in: 1...20_000, using: &generator)) {
                guard case .bytes(let bytes) = seen else { throw RecordEnd.CreationFailure() }
                received += bytes
            }
        }
        #expect(received == sent)
    }

    @Test func alertsAreTheOnesOfTheRFC() {
        #expect(RecordViolation.unexpectedRecord(type: 20).alert == 10)
        #expect(RecordViolation.badRecordMAC.alert == 20)
        #expect(RecordViolation.recordTooLong.alert == 22)
        #expect(RecordViolation.invalidKeyUpdateRequest(2).alert == 47)
        #expect(RecordViolation.malformedKeyUpdate.alert == 50)
    }

    /// The lengths in the headers of whole records.
    private func lengths(_ wire: [UInt8]) -> [Int] {
        var lengths: [Int] = []
        var start = 0
        while start + 5 <= wire.count {
            lengths.append(Int(wire[start + 3]) << 8 | Int(wire[start + 4]))
            start += 5 + (lengths.last ?? 0)
        }
        #expect(start == wire.count)
        return lengths
    }
}
