import Testing
import WebSocketProtocol

@Suite("Inflating, RFC 7692 §7.2")
struct InflatingTests {
    static let takeover = PermessageDeflateParameters()
    static let noTakeover = PermessageDeflateParameters(serverNoContextTakeover: true, clientNoContextTakeover: true)
    static let hello: [UInt8] = [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]

    private func setting(
        _ sender: Role, _ parameters: PermessageDeflateParameters = Self.takeover, limit: Int? = nil
    ) -> EngineSetting {
        .receiving(from: sender, limit: limit, deflate: parameters)
    }

    private func compressed(_ payload: [UInt8], from sender: Role) -> [UInt8] {
        WireFrame(0xC1, payload, from: sender).bytes
    }

    // MARK: The RFC's examples, §7.2.3

    @Test(
        arguments: [
            // §7.2.3.1, whole and in fragments.
            [0xC1, 0x07, 0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00],
            [0x41, 0x03, 0xF2, 0x48, 0xCD, 0x80, 0x04, 0xC9, 0xC9, 0x07, 0x00],
            // §7.2.3.3: a block without compression.
            [0xC1, 0x0B, 0x00, 0x05, 0x00, 0xFA, 0xFF, 0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x00],
            // §7.2.3.4: a block marked as the last.
            [0xC1, 0x08, 0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00],
            // §7.2.3.5: two blocks.
            [0xC1, 0x0D, 0xF2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xCA, 0xC9, 0xC9, 0x07, 0x00],
        ] as [[UInt8]])
    func examplesOfTheRFCAreInflated(_ bytes: [UInt8]) {
        expectMessages([.text("Hello")], in: bytes, by: self.setting(.server))
        expectMessages([.text("Hello")], in: bytes, by: self.setting(.server, Self.noTakeover))
        // And twice in succession, if every message starts afresh or refers to nothing earlier.
        expectMessages([.text("Hello"), .text("Hello")], in: bytes + bytes, by: self.setting(.server))
        expectMessages([.text("Hello"), .text("Hello")], in: bytes + bytes, by: self.setting(.server, Self.noTakeover))
    }

    @Test(arguments: Role.both)
    func slidingWindowIsSharedBetweenMessages(_ sender: Role) {
        // §7.2.3.2
        let bytes =
            self.compressed(Self.hello, from: sender) + self.compressed([0xF2, 0x00, 0x11, 0x00, 0x00], from: sender)
        expectMessages([.text("Hello"), .text("Hello")], in: bytes, by: self.setting(sender))
        expectMessages(
            [.text("Hello"), .piece(.text, [0x48], starts: true), .violation(.invalidCompressedData)], in: bytes,
            by: self.setting(sender, Self.noTakeover))
    }

    @Test(arguments: Role.both)
    func windowIsKeptAfterAFinalBlock(_ sender: Role) {
        let last: [UInt8] = [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00]
        let bytes = self.compressed(last, from: sender) + self.compressed([0xF2, 0x00, 0x11, 0x00, 0x00], from: sender)
        expectMessages([.text("Hello"), .text("Hello")], in: bytes, by: self.setting(sender))
    }

    @Test(arguments: Role.both, [Self.takeover, Self.noTakeover])
    func finalBlockWithoutAnEmptyOneIsInflated(_ sender: Role, _ parameters: PermessageDeflateParameters) {
        let bytes = self.compressed([0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], from: sender)
        expectMessages([.text("Hello"), .text("Hello")], in: bytes + bytes, by: self.setting(sender, parameters))
    }

    /// The empty block whose last four bytes are left out may itself be marked as the last one: §7.2.1 asks for its
    /// kind only.
    @Test(arguments: Role.both, [Self.takeover, Self.noTakeover])
    func emptyFinalBlockIsInflated(_ sender: Role, _ parameters: PermessageDeflateParameters) {
        let bytes = [
            [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x01],
            [0x00, 0x05, 0x00, 0xFA, 0xFF, 0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x01],
            [0x01],
            Self.hello,
        ].flatMap { self.compressed($0, from: sender) }
        expectMessages(
            [.text("Hello"), .text("Hello"), .text(""), .text("Hello")], in: bytes,
            by: self.setting(sender, parameters))
    }

    @Test(arguments: Role.both)
    func maskedExamplesAreInflated(_ sender: Role) {
        let bytes =
            WireFrame(0x41, Array(Self.hello.prefix(3)), from: sender).bytes
            + WireFrame(0x89, "ping", from: sender).bytes
            + WireFrame(0x00, from: sender).bytes
            + WireFrame(0x80, Array(Self.hello.dropFirst(3)), from: sender).bytes
        expectMessages([.text("Hello"), .ping(Array("ping".utf8))], in: bytes, by: self.setting(sender))
    }

    @Test(arguments: Role.both)
    func contextTakeoverIsTheSendersDirectionOnly(_ sender: Role) {
        // Parameters of the receiver's own messages do not apply to received ones.
        let other = PermessageDeflateParameters(
            serverNoContextTakeover: sender == .client, clientNoContextTakeover: sender == .server)
        let bytes =
            self.compressed(Self.hello, from: sender) + self.compressed([0xF2, 0x00, 0x11, 0x00, 0x00], from: sender)
        expectMessages([.text("Hello"), .text("Hello")], in: bytes, by: self.setting(sender, other))
    }

    // MARK: Empty messages and fragments

    @Test(arguments: Role.both, [Self.takeover, Self.noTakeover])
    func emptyMessagesAreInflated(_ sender: Role, _ parameters: PermessageDeflateParameters) {
        // §7.2.3.6, then an empty payload, which keeps the window, then empty fragments.
        let bytes =
            self.compressed([0x00], from: sender) + self.compressed([], from: sender)
            + WireFrame(0x42, from: sender).bytes + WireFrame(0x80, [0x00], from: sender).bytes
            + WireFrame(0x42, from: sender).bytes + WireFrame(0x80, from: sender).bytes
            + self.compressed(Self.hello, from: sender)
        expectMessages(
            [.text(""), .text(""), .binary([]), .binary([]), .text("Hello")], in: bytes,
            by: self.setting(sender, parameters))
    }

    @Test(arguments: Role.both)
    func emptyFragmentsOfACompressedMessageAreInflated(_ sender: Role) {
        var bytes = WireFrame(0x41, from: sender).bytes
        for byte in Self.hello {
            bytes += WireFrame(0x00, [byte], from: sender).bytes + WireFrame(0x00, from: sender).bytes
        }
        bytes += WireFrame(0x80, from: sender).bytes
        expectMessages([.text("Hello")], in: bytes, by: self.setting(sender))
        let frames = EngineDriver.observe(bytes, by: self.setting(sender), fed: .whole).count
        #expect(frames == 2 + 2 * Self.hello.count, "every frame is passed on, whatever it inflated to")
    }

    @Test(arguments: Role.both)
    func uncompressedMessagesAmongCompressedOnesAreRead(_ sender: Role) {
        let bytes =
            WireFrame(0x81, "plain", from: sender).bytes + self.compressed(Self.hello, from: sender)
            + WireFrame(0x82, [0xF2, 0x48], from: sender).bytes
            + self.compressed([0xF2, 0x00, 0x11, 0x00, 0x00], from: sender)
        expectMessages(
            [.text("plain"), .text("Hello"), .binary([0xF2, 0x48]), .text("Hello")], in: bytes, by: self.setting(sender)
        )
    }

    /// A character too may be cut where a frame ends.
    @Test(arguments: Role.both)
    func fragmentsOfACompressedMessageAreJoinedAroundAControlFrame(_ sender: Role) {
        let payload: [UInt8] = [0x00, 0x02, 0x00, 0xFD, 0xFF, 0xC3, 0xA9, 0x00]
        for cut in 0...payload.count {
            let bytes =
                WireFrame(0x41, Array(payload[..<cut]), from: sender).bytes
                + WireFrame(0x89, [7], from: sender).bytes
                + WireFrame(0x80, Array(payload[cut...]), from: sender).bytes
            expectMessages([.text("\u{E9}"), .ping([7])], in: bytes, by: self.setting(sender))
        }
    }

    @Test(arguments: Role.both)
    func characterIsCheckedAcrossCompressedFragments(_ sender: Role) {
        let payload: [UInt8] = [0x00, 0x02, 0x00, 0xFD, 0xFF, 0xC3, 0x41, 0x00]
        for cut in 0...payload.count {
            let bytes =
                WireFrame(0x41, Array(payload[..<cut]), from: sender).bytes
                + WireFrame(0x80, Array(payload[cut...]), from: sender).bytes
            let whole = EngineDriver.observe(bytes, by: self.setting(sender), fed: .whole)
            #expect(whole.last == .violation(.invalidUTF8), "cut at \(cut)")
            expectObserves(whole, in: bytes, by: self.setting(sender))
        }
    }

    // MARK: Bad data

    @Test(
        arguments: Role.both,
        [
            [0x07],  // a kind of block that there is not
            [0x00, 0x05, 0x00, 0x00, 0x00],  // a length that its complement does not confirm
            [0xF2, 0x00, 0x11, 0x00, 0x00],  // a reference to what never was
            [0xF2, 0x48, 0xCD],  // a block that was cut short
            [0x00, 0x09, 0x00, 0xF6, 0xFF, 0x48],  // a stored block that was cut short
        ] as [[UInt8]])
    func corruptDataIsRejected(_ sender: Role, _ payload: [UInt8]) {
        let bytes = WireFrame(0xC2, payload, from: sender).bytes + WireFrame(0x81, "later", from: sender).bytes
        let whole = EngineDriver.observe(bytes, by: self.setting(sender), fed: .whole)
        #expect(whole.last == .violation(.invalidCompressedData))
        #expect(!whole.contains(.text("later")))
        expectObserves(whole, in: bytes, by: self.setting(sender))
    }

    @Test(arguments: Role.both)
    func dataBeforeCorruptionIsDelivered(_ sender: Role) {
        let payload = Array(Self.hello.dropLast()) + [0x00, 0x00, 0x00, 0xFF, 0xFF, 0x07]
        expectObserves(
            [.piece(.binary, Array("Hello".utf8), starts: true), .violation(.invalidCompressedData)],
            in: WireFrame(0xC2, payload, from: sender).bytes, by: self.setting(sender))
    }

    @Test(arguments: Role.both, TextTests.invalid)
    func textIsCheckedAfterInflating(_ sender: Role, _ text: ([UInt8], Int)) {
        let count = UInt8(text.0.count)
        let payload = [0x00, count, 0x00, ~count, 0xFF] + text.0 + [0x00]
        let valid = Array(text.0.prefix(text.1))
        let before: [Observation] = valid.isEmpty ? [] : [.piece(.text, valid, starts: true)]
        expectObserves(
            before + [.violation(.invalidUTF8)], in: self.compressed(payload, from: sender), by: self.setting(sender))
        // The same bytes in a binary message.
        expectMessages([.binary(text.0)], in: WireFrame(0xC2, payload, from: sender).bytes, by: self.setting(sender))
    }

    @Test(arguments: Role.both, TextTests.incomplete)
    func inflatedMessageThatEndsInsideACharacterIsRejected(_ sender: Role, _ text: [UInt8]) {
        let count = UInt8(text.count)
        expectObserves(
            [.piece(.text, text, starts: true), .violation(.invalidUTF8)],
            in: self.compressed([0x00, count, 0x00, ~count, 0xFF] + text + [0x00], from: sender),
            by: self.setting(sender))
    }

    // MARK: Sizes

    @Test(arguments: Role.both)
    func inflatedSizeCountsAgainstTheLimit(_ sender: Role) {
        let bytes = self.compressed(Self.hello, from: sender)
        expectMessages([.text("Hello")], in: bytes, by: self.setting(sender, limit: 5))
        expectObserves(
            [.piece(.text, Array("Hell".utf8), starts: true), .violation(.messageTooLong)], in: bytes,
            by: self.setting(sender, limit: 4))
        let fragments =
            WireFrame(0x41, Array(Self.hello.prefix(3)), from: sender).bytes
            + WireFrame(0x80, Array(Self.hello.dropFirst(3)), from: sender).bytes
        expectMessages([.text("Hello")], in: fragments, by: self.setting(sender, limit: 5))
        let seen = EngineDriver.observe(fragments, by: self.setting(sender, limit: 4), fed: .whole)
        #expect(seen.last == .violation(.messageTooLong))
        expectObserves(seen, in: fragments, by: self.setting(sender, limit: 4))
    }

    @Test(arguments: Role.both)
    func invalidCharacterIsFoundBeforeTheMessageIsTooLong(_ sender: Role) {
        let payload: [UInt8] = [0x00, 0x04, 0x00, 0xFB, 0xFF, 0x61, 0xFF, 0x62, 0x63, 0x00]
        expectObserves(
            [.piece(.text, [0x61], starts: true), .violation(.invalidUTF8)],
            in: self.compressed(payload, from: sender), by: self.setting(sender, limit: 3))
        expectObserves(
            [.piece(.text, [0x61], starts: true), .violation(.messageTooLong)],
            in: self.compressed(payload, from: sender), by: self.setting(sender, limit: 1))
    }

    @Test(arguments: Role.both)
    func bombIsInflatedInPiecesOf64KiB(_ sender: Role) {
        let bomb = FixedBlock.repeating(0x61, matches: 20_000)
        let count = 1 + 258 * 20_000
        let driver = EngineDriver(self.setting(sender, limit: 1 << 20))
        driver.feed(self.compressed(bomb, from: sender))
        #expect(driver.seen.last == .violation(.messageTooLong))
        #expect(driver.sizes.allSatisfy { $0 <= 65_536 })
        #expect(driver.sizes.reduce(0, +) == 1 << 20)
        let patient = EngineDriver(self.setting(sender))
        patient.feed(self.compressed(bomb, from: sender))
        #expect(patient.seen == [.text(String(repeating: "a", count: count))])
        #expect(patient.sizes.allSatisfy { $0 <= 65_536 })
        #expect(patient.mostKept == 0)
    }
}
