import ByteKernels
import Foundation

extension Data {
    /// A copy of `bytes`.
    init(copying bytes: RawSpan) {
        self.init(count: bytes.byteCount)
        var room = self.mutableBytes
        room.copy(bytes, at: 0)
    }
}
