import ByteKernels
import Foundation

/// The taking end of a pipe, as the loader wants it.
final class PipedStream: InputStream {
    private let pipe: BodyPipe
    private var status = Stream.Status.notOpen

    init(_ pipe: BodyPipe) {
        self.pipe = pipe
        super.init(data: Data())
    }

    override func open() { self.status = .open }

    override func close() {
        self.status = .closed
        self.pipe.close()
    }

    override var streamStatus: Stream.Status { self.pipe.hasFailed ? .error : self.status }

    override var streamError: (any Error)? { self.pipe.hasFailed ? CocoaError(.fileReadUnknown) : nil }

    override var hasBytesAvailable: Bool { self.status == .open }

    override func read(_ buffer: ForeignBytes.Target, maxLength length: Int) -> Int {
        self.pipe.read(into: buffer, count: length)
    }
}
