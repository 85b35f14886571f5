import ByteKernels
import Testing
import WebSocketProtocol

@Suite("Messages received in one frame")
struct WholeMessageTests {
    /// The message taken from `bytes` in one step, and its end.
    private func take(
        _ bytes: [UInt8], from sender: Role, limit: Int? = nil
    ) -> (kind: MessageKind?, payload: [UInt8], position: Int, after: [UInt8]) {
        var engine = WebSocketEngine(role: sender.other, maximumMessageSize: limit)
        var (bytes, position) = (bytes, 0)
        let taken = bytes.withMutableRawSpan { span -> (MessageKind, [UInt8])? in
            engine.nextWholeMessage(&span, at: &position).map {
                ($0.kind, [UInt8](span.bytes.extracting($0.payload)))
            }
        }
        return (taken?.0, taken?.1 ?? [], position, bytes)
    }

    @Test(arguments: Role.both, [0, 1, 4, 125, 126, 127, 1000, 65_535])
    func wholeMessageUpToTheLongestShortLengthIsTaken(_ sender: Role, _ count: Int) {
        let payload = [UInt8](repeating: 0x61, count: count)
        for (first, kind) in [(0x81 as UInt8, MessageKind.text), (0x82, .binary)] {
            let bytes = WireFrame(first, payload, from: sender).bytes
            let taken = self.take(bytes + [0x82], from: sender)
            #expect(taken.kind == kind)
            #expect(taken.payload == payload)
            #expect(taken.position == bytes.count)
        }
    }

    @Test(arguments: Role.both)
    func wholeMessagesWithOtherFramesAreParsedNormally(_ sender: Role) {
        let payload = [UInt8](repeating: 0x61, count: 200)
        let others: [WireFrame] = [
            WireFrame(0x01, payload, from: sender), WireFrame(0x80, payload, from: sender),
            WireFrame(0xC2, payload, from: sender), WireFrame(0x89, [1, 2, 3], from: sender),
            WireFrame(0x88, [0x03, 0xE8], from: sender), WireFrame(0x83, payload, from: sender),
            WireFrame(0x82, payload, from: sender.other), WireFrame(0x82, payload, from: sender, lengthSize: 8),
            WireFrame(0x82, [1, 2, 3], from: sender, lengthSize: 2), WireFrame(0x81, [0x61, 0xFF], from: sender),
            WireFrame(0x81, [0x61, 0xC3], from: sender),
            WireFrame(0x82, [UInt8](repeating: 7, count: 65_536), from: sender),
        ]
        for frame in others {
            let taken = self.take(frame.bytes, from: sender)
            #expect(taken.kind == nil, "\(frame.first)")
            #expect(taken.position == 0)
            #expect(taken.after == frame.bytes, "\(frame.first)")
        }
    }

    @Test(arguments: Role.both)
    func incompleteMessageIsNotTaken(_ sender: Role) {
        let bytes = WireFrame(0x82, [UInt8](repeating: 0x61, count: 130), from: sender).bytes
        for count in 0..<bytes.count {
            let taken = self.take(Array(bytes[..<count]), from: sender)
            #expect(taken.kind == nil)
            #expect(taken.after == Array(bytes[..<count]))
        }
    }

    @Test(arguments: Role.both)
    func wholeMessageIsHeldToTheLimit(_ sender: Role) {
        let bytes = WireFrame(0x82, [UInt8](repeating: 0x61, count: 50), from: sender).bytes
        #expect(self.take(bytes, from: sender, limit: 50).kind == .binary)
        #expect(self.take(bytes, from: sender, limit: 49).kind == nil)
    }

    @Test(arguments: Role.both)
    func wholeMessageInsideAnotherIsNotTaken(_ sender: Role) {
        var engine = WebSocketEngine(role: sender.other, maximumMessageSize: nil)
        var bytes =
            WireFrame(0x02, [1, 2], from: sender).bytes + WireFrame(0x82, [3, 4], from: sender).bytes
        var position = 0
        let seen = bytes.withMutableRawSpan { span -> [Bool] in
            let before = engine.nextWholeMessage(&span, at: &position) == nil
            _ = engine.nextEvent(&span, at: &position)
            let inside = engine.nextWholeMessage(&span, at: &position) == nil
            return [before, inside]
        }
        #expect(seen == [true, true])
    }
}
