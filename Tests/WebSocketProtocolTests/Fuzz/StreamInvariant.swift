import Testing
import WebSocketProtocol

/// Any bytes in any split give events or one violation, the same for every split, in bounded memory.
enum StreamInvariant {
    /// Fewer bytes than the longest control frame.
    static let mostKept = 138

    /// - Parameter name: identifies the stream in a failure.
    static func expect(
        _ bytes: [UInt8], by setting: EngineSetting, name: String, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let whole = EngineDriver(setting)
        whole.feed(bytes)
        let ends = whole.seen.filter(\.isEnd)
        #expect(ends.count <= 1, "\(name): more than one end", sourceLocation: sourceLocation)
        #expect(
            ends.first == nil || whole.seen.last == ends.first, "\(name): more behind the end",
            sourceLocation: sourceLocation)
        var seed = UInt64(bytes.count)
        for byte in bytes { seed = seed &* 31 &+ UInt64(byte) }
        let feedings: [Feeding] = [.byByte, .cut(seed: seed, longest: 5), .cut(seed: seed &+ 1, longest: 400)]
        for feeding in feedings {
            let driver = EngineDriver(setting)
            for piece in feeding.pieces(of: bytes) { driver.feed(piece) }
            #expect(driver.seen == whole.seen, "\(name), fed \(feeding)", sourceLocation: sourceLocation)
            #expect(driver.mostKept <= Self.mostKept, "\(name), fed \(feeding)", sourceLocation: sourceLocation)
            if setting.deflate != nil {
                let most = driver.sizes.max() ?? 0
                #expect(
                    most <= max(DeflateContext.outputCapacity, 400), "\(name), fed \(feeding)",
                    sourceLocation: sourceLocation)
            }
        }
        for feeding in [.whole] + feedings {
            let seen = EngineDriver.observe(bytes, by: setting, fed: feeding, takesWholeMessages: true)
            #expect(seen == whole.seen, "\(name), fed \(feeding), by whole messages", sourceLocation: sourceLocation)
        }
        Self.compareWithScanner(whole.seen, bytes, setting, name: name, sourceLocation: sourceLocation)
        guard setting.deflate == nil else { return }
        Self.compareWithForwarder(whole.seen, bytes, setting, name: name, sourceLocation: sourceLocation)
        for feeding in feedings {
            Self.compareWithForwarder(
                whole.seen, bytes, setting, fed: feeding, name: "\(name), fed \(feeding)",
                sourceLocation: sourceLocation)
        }
    }

    /// The receiver of a forwarder's output sees the data of its input; the forwarder removes the control frames.
    private static func compareWithForwarder(
        _ seen: [Observation], _ bytes: [UInt8], _ setting: EngineSetting, fed feeding: Feeding = .whole, name: String,
        sourceLocation: SourceLocation
    ) {
        let driver = ForwarderDriver.observe(
            bytes, from: setting.role.other, limit: setting.maximumMessageSize, fed: feeding)
        let whole = ForwarderDriver.observe(
            bytes, from: setting.role.other, limit: setting.maximumMessageSize, fed: feeding, takesWholeMessages: true)
        #expect(whole.forwarded == driver.forwarded, "\(name), forwarded whole", sourceLocation: sourceLocation)
        #expect(whole.events == driver.events, "\(name), forwarded whole", sourceLocation: sourceLocation)
        #expect(
            driver.events.map(\.observation) == seen.filter { !$0.isData }, "\(name), forwarded",
            sourceLocation: sourceLocation)
        #expect(driver.mostKept <= Self.mostKept, "\(name), forwarded", sourceLocation: sourceLocation)
        let through = EngineDriver.observe(driver.forwarded, by: setting, fed: .whole)
        let data = seen.filter(\.isData)
        if case .violation(.invalidUTF8)? = seen.last {
            #expect(data.count - through.count <= 1, "\(name), forwarded", sourceLocation: sourceLocation)
            #expect(
                data.dropLast().starts(with: through.dropLast()), "\(name), forwarded", sourceLocation: sourceLocation)
        } else {
            #expect(through == data, "\(name), forwarded", sourceLocation: sourceLocation)
        }
    }

    /// A scanner sees the same, except for violations in the payload.
    private static func compareWithScanner(
        _ seen: [Observation], _ bytes: [UInt8], _ setting: EngineSetting, name: String, sourceLocation: SourceLocation
    ) {
        let scanner = FrameScanner(
            from: setting.role.other, reservedBits: setting.deflate == nil ? .none : .compression,
            maximumMessageSize: setting.deflate == nil ? setting.maximumMessageSize : nil)
        let whole = ScannerDriver.observe(bytes, by: scanner, fed: .whole)
        let byByte = ScannerDriver.observe(bytes, by: scanner, fed: .byByte)
        #expect(byByte.seen == whole.seen, "\(name), scanned byte by byte", sourceLocation: sourceLocation)
        #expect(byByte.forwarded == whole.forwarded, "\(name), scanned byte by byte", sourceLocation: sourceLocation)
        #expect(
            bytes.starts(with: whole.forwarded), "\(name): something else was forwarded", sourceLocation: sourceLocation
        )
        #expect(byByte.mostKept <= Self.mostKept, "\(name), scanned", sourceLocation: sourceLocation)
        let frames = whole.seen.filter { !$0.isData || setting.deflate == nil }
        let ours = seen.filter { !$0.isData || setting.deflate == nil }
        if Self.showsInPayload(seen.last) {
            let good = ours.dropLast().filter { !$0.isData }
            #expect(frames.filter { !$0.isData }.starts(with: good), "\(name), scanned", sourceLocation: sourceLocation)
        } else {
            #expect(frames == ours, "\(name), scanned", sourceLocation: sourceLocation)
        }
    }

    private static func showsInPayload(_ last: Observation?) -> Bool {
        switch last {
        case .violation(.invalidUTF8), .violation(.invalidCompressedData), .violation(.messageTooLong): true
        case .data, .ping, .pong, .close, .violation, nil: false
        }
    }
}
