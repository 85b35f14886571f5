import Foundation
import SessionTasks

/// The two streams that a connection becomes when it is taken out of its task. Neither is open.
///
/// Closing the output tells the peer that this was all; when both are closed, or gone, the connection ends.
package struct CapturedStreamPair: @unchecked Sendable {
    package let input: InputStream
    package let output: OutputStream

    /// On the loop of the connection, within the completion of `StreamTask.captureStreams`.
    package init(_ captured: CapturedStreams) {
        let connection = CapturedConnection(captured)
        self.input = CapturedInputStream(connection)
        self.output = CapturedOutputStream(connection)
    }
}
