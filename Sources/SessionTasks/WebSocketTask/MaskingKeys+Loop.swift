import StreamTransport
import WebSocketProtocol

extension MaskingKeys {
    /// The loop's keys, 64 at a time from the kernel's generator: a system call per key would cost more than the frame.
    static func shared(on loop: Loop) -> MaskingKeys {
        let system = loop.system
        return loop.local(MaskingKeys.self) {
            MaskingKeys {
                system.randomWords(32).flatMap { word in
                    [UInt32(truncatingIfNeeded: word), UInt32(truncatingIfNeeded: word >> 32)]
                }
            }
        }
    }
}
