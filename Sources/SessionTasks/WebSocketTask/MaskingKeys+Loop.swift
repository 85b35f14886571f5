import StreamTransport
import WebSocketProtocol

extension MaskingKeys {
    /// The loop's keys, 64 at a time from the kernel's generator: a system call per key would cost more than the frame.
    static func shared(on loop: Loop) -> MaskingKeys {
        let system = loop.system
        return loop.local(MaskingKeys.self) {
            MaskingKeys { Self.keys(of: system.randomWords(32)) }
        }
    }

    /// Two keys of each word. A system that gave no words would leave keys that anybody knows: then one comes from the
    /// standard library's generator, which is cryptographic too.
    package static func keys(of words: [UInt64]) -> (first: UInt32, more: [UInt32]) {
        var keys: [UInt32] = []
        keys.reserveCapacity(words.count * 2)
        for word in words {
            keys.append(UInt32(truncatingIfNeeded: word))
            keys.append(UInt32(truncatingIfNeeded: word >> 32))
        }
        let first = keys.popLast() ?? UInt32.random(in: .min ... .max)
        return (first, keys)
    }
}
