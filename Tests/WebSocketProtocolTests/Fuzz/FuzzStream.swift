import TestSupport
import WebSocketProtocol

/// Random streams: noise, valid streams, and damaged valid streams.
struct FuzzStream {
    private var generator: SeededGenerator
    private let sender: Role
    private let writer: EngineSender?

    init(seed: UInt64, from sender: Role, deflate: PermessageDeflateParameters?) {
        self.generator = SeededGenerator(seed: seed)
        self.sender = sender
        self.writer = deflate.map {
            EngineSender(sender, $0, policy: DeflatePolicy(level: 3, minimumSize: 0), share: DeflateContext())
        }
    }

    mutating func bytes() -> [UInt8] {
        switch Int.random(in: 0..<8, using: &self.generator) {
        case 0: self.noise()
        case 1, 2: self.valid()
        default: self.mutated(self.valid())
        }
    }

    mutating func valid() -> [UInt8] {
        var bytes: [UInt8] = []
        for _ in 0..<Int.random(in: 1...6, using: &self.generator) {
            if Int.random(in: 0..<3, using: &self.generator) == 0 { bytes += self.control() }
            bytes += self.message()
        }
        if Bool.random(using: &self.generator) {
            bytes +=
                WireFrame(0x88, [0x03, UInt8.random(in: 0xE8...0xEB, using: &self.generator)], from: self.sender).bytes
        }
        return bytes
    }

    /// Frames with a valid first byte, so that noise reaches later code.
    private mutating func noise() -> [UInt8] {
        let firsts: [UInt8] = [0x00, 0x01, 0x02, 0x80, 0x81, 0x82, 0x88, 0x89, 0x8A, 0x41, 0xC1, 0xC2, 0xF1, 0x83]
        var bytes: [UInt8] = []
        for _ in 0..<Int.random(in: 1...5, using: &self.generator) {
            let mask: UInt8 =
                (self.sender == .client) != (Int.random(in: 0..<20, using: &self.generator) == 0) ? 0x80 : 0
            bytes.append(firsts.randomElement(using: &self.generator) ?? 0x81)
            bytes.append(mask | UInt8.random(in: 0...127, using: &self.generator))
            bytes += self.generator.bytes(Int.random(in: 0...30, using: &self.generator))
        }
        return bytes
    }

    private mutating func control() -> [UInt8] {
        let payload = self.generator.bytes(Int.random(in: 0...125, using: &self.generator))
        return WireFrame(Bool.random(using: &self.generator) ? 0x89 : 0x8A, payload, from: self.sender).bytes
    }

    private mutating func message() -> [UInt8] {
        let isText = Bool.random(using: &self.generator)
        let payload = isText ? self.text() : self.binary()
        var fragments: [[UInt8]] = []
        var rest = payload[...]
        while Int.random(in: 0..<3, using: &self.generator) == 0 {
            let count = Int.random(in: 0...rest.count, using: &self.generator)
            fragments.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        fragments.append(Array(rest))
        if let writer = self.writer, payload.count > 1_000 || Int.random(in: 0..<4, using: &self.generator) > 0 {
            return writer.message(isText ? .text : .binary, fragments)
        }
        var bytes: [UInt8] = []
        for (index, fragment) in fragments.enumerated() {
            let opcode: UInt8 = index > 0 ? 0 : isText ? 1 : 2
            let final: UInt8 = index == fragments.count - 1 ? 0x80 : 0
            bytes += WireFrame(final | opcode, fragment, from: self.sender).bytes
            if final == 0, Int.random(in: 0..<3, using: &self.generator) == 0 { bytes += self.control() }
        }
        return bytes
    }

    private mutating func text() -> [UInt8] {
        var text = ""
        for _ in 0..<Int.random(in: 0...120, using: &self.generator) {
            let range: ClosedRange<UInt32> =
                [0...0x7F, 0x80...0x7FF, 0x800...0xFFFF, 0x1_0000...0x10_FFFF]
                .randomElement(using: &self.generator) ?? 0...0x7F
            text.unicodeScalars.append(Unicode.Scalar(UInt32.random(in: range, using: &self.generator)) ?? "?")
        }
        return Array(text.utf8)
    }

    private mutating func binary() -> [UInt8] {
        let bytes = self.generator.bytes(Int.random(in: 0...200, using: &self.generator))
        // Larger than the output of one event; without compression it would only take time.
        let isLarge = self.writer != nil && Int.random(in: 0..<6, using: &self.generator) == 0
        return isLarge ? (0..<600).flatMap { _ in bytes } : bytes
    }

    private mutating func mutated(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...3, using: &self.generator) where !bytes.isEmpty {
            let place = Int.random(in: 0..<bytes.count, using: &self.generator)
            switch Int.random(in: 0..<6, using: &self.generator) {
            case 0: bytes.remove(at: place)
            case 1:
                bytes.insert(contentsOf: self.generator.bytes(Int.random(in: 1...4, using: &self.generator)), at: place)
            case 2: bytes.removeLast(bytes.count - place)
            case 3: bytes.insert(contentsOf: bytes[place..<min(place + 20, bytes.count)], at: place)
            default: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &self.generator)
            }
        }
        return bytes
    }
}
