import ByteKernels
import WebSocketProtocol

/// Writes messages as the tasks do: compressed where that was agreed, framed, masked for a client.
final class EngineSender {
    private var engine: WebSocketEngine
    private let role: Role
    private let keys: MaskingKeys

    init(_ role: Role, _ parameters: PermessageDeflateParameters?, policy: DeflatePolicy, share: DeflateContext) {
        self.role = role
        self.engine = WebSocketEngine(role: role, maximumMessageSize: nil)
        var next: UInt32 = 0x1234_5678
        self.keys = MaskingKeys {
            next = next &* 1_664_525 &+ 1_013_904_223
            return (next, [])
        }
        if let parameters { self.engine.startDeflate(parameters, policy: policy, context: share) }
    }

    /// A message in as many frames as there are fragments.
    func message(_ kind: MessageKind, _ fragments: [[UInt8]]) -> [UInt8] {
        var bytes: [UInt8] = []
        for (index, fragment) in fragments.enumerated() {
            let isFirst = index == 0
            let isLast = index == fragments.count - 1
            let share = fragment.withRawSpan {
                self.engine.compress(startsMessage: isFirst, endsMessage: isLast, $0)
            }
            let opcode = isFirst ? kind == .text ? Opcode.text : .binary : .continuation
            let payload = share?.withCompressed { [UInt8]($0) } ?? fragment
            bytes += self.frame(opcode, isFinal: isLast, isCompressed: isFirst && share != nil, payload)
        }
        return bytes
    }

    func frame(_ opcode: Opcode, isFinal: Bool = true, isCompressed: Bool = false, _ payload: [UInt8]) -> [UInt8] {
        var target = [UInt8](repeating: 0, count: self.engine.frameSize(payloadCount: payload.count))
        let keys = self.keys
        _ = target.withMutableRawSpan { target in
            payload.withRawSpan {
                self.engine.encodeFrame(
                    opcode, isFinal: isFinal, isCompressed: isCompressed, $0, keys: keys, into: &target)
            }
        }
        return target
    }
}
