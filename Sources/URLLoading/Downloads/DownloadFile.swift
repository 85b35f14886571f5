import ByteKernels
import Dispatch
import Foundation
import Synchronization

/// The file that a download goes to until it is whole: written on a queue of its own, while as much as `queueLimit`
/// waits. Usable from any thread.
package final class DownloadFile: Sendable {
    package enum Notice: Sendable {
        /// After `append` returned `false`: there is room again.
        case hasRoom
        /// Nothing more is written. Told once.
        case failed(DownloadFileFailure)
    }

    package typealias Completion = @Sendable (Result<Int64, DownloadFileFailure>) -> Void

    private struct State {
        var queue = WriteQueue()
        var isWriting = false
        var isFull = false
        var isClosed = false
        /// Bytes that are in the file.
        var length: Int64
        var failure: DownloadFileFailure?
        var finish: Completion?
        var observer: (@Sendable (Notice) -> Void)?
    }

    /// Bytes that may wait to be written, beside those that are being written.
    package static let queueLimit = 1 << 20

    package let url: URL
    private let descriptor: Int32
    private let queue = DispatchQueue(label: "URLLoading.download")
    private let state: Mutex<State>

    /// The file of an open descriptor, written from `offset` on; the descriptor is closed with it.
    package init(_ descriptor: Int32, url: URL, offset: Int64) {
        self.descriptor = descriptor
        self.url = url
        self.state = Mutex(State(length: offset))
    }

    deinit {
        _ = Foundation.close(self.descriptor)
    }

    /// Bytes written, those of a former attempt included.
    package var length: Int64 { self.state.withLock { $0.length } }

    /// Calls `work` on the file's queue. Replaces what was set before.
    package func observe(_ work: @escaping @Sendable (Notice) -> Void) {
        self.state.withLock { $0.observer = work }
    }

    /// Adds a copy of `bytes`. What is added behind the end, or a failure, is dropped.
    /// - Returns: whether more may come. If not, a notice follows; what comes all the same is taken.
    @discardableResult
    package func append(_ bytes: RawSpan) -> Bool {
        let (takesMore, begins) = self.state.withLock { state in
            guard !state.isClosed, state.failure == nil, bytes.byteCount > 0 else { return (!state.isFull, false) }
            state.queue.append(bytes)
            // Only the notice says that there is room again.
            if state.queue.count >= Self.queueLimit { state.isFull = true }
            defer { state.isWriting = true }
            return (!state.isFull, !state.isWriting)
        }
        if begins { self.queue.async { self.write() } }
        return takesMore
    }

    /// Closes the file when everything is written, and tells, on the file's queue, how long it is, or what went wrong.
    /// The file stays.
    package func finish(_ completion: @escaping Completion) {
        let begins = self.state.withLock { state in
            state.finish = completion
            state.isClosed = true
            state.observer = nil
            defer { state.isWriting = true }
            return !state.isWriting
        }
        if begins { self.queue.async { self.write() } }
    }

    /// Drops what waits, and removes the file.
    package func discard() {
        self.state.withLock { state in
            state.isClosed = true
            state.queue = WriteQueue()
            state.observer = nil
        }
        self.remove()
    }

    /// Removes the file if it is still where it was made.
    package func remove() {
        unlink(self.url.path)
    }

    // MARK: On the queue

    private func write() {
        var block: [UInt8] = []
        while true {
            let (offset, hasRoom) = self.state.withLock { state -> (Int64, (@Sendable (Notice) -> Void)?) in
                state.queue.exchange(&block)
                // Half of it: whoever waits is not woken for every block.
                guard state.isFull, state.queue.count <= Self.queueLimit / 2 else { return (state.length, nil) }
                state.isFull = false
                return (state.length, state.observer)
            }
            hasRoom?(.hasRoom)
            if block.isEmpty {
                if self.rest() { return }
            } else if let failure = self.write(&block, at: offset) {
                return self.fail(failure)
            }
        }
    }

    private func write(_ bytes: inout [UInt8], at offset: Int64) -> DownloadFileFailure? {
        var offset = offset
        while !bytes.isEmpty {
            let count = pwrite(self.descriptor, bytes, bytes.count, off_t(offset))
            if count < 0 {
                let number = errno
                if number == EINTR { continue }
                return DownloadFileFailure(step: .writing, number: number)
            }
            offset += Int64(count)
            if count == bytes.count { bytes.removeAll(keepingCapacity: true) } else { bytes.removeFirst(count) }
            self.state.withLock { $0.length = offset }
        }
        return nil
    }

    /// - Returns: whether there is nothing to be done.
    private func rest() -> Bool {
        let (finish, result) = self.state.withLock { state -> (Completion?, Result<Int64, DownloadFileFailure>?) in
            guard state.queue.count == 0 else { return (nil, nil) }
            state.isWriting = false
            defer { state.finish = nil }
            return (state.finish, state.failure.map { .failure($0) } ?? .success(state.length))
        }
        if let result { finish?(result) }
        return result != nil
    }

    private func fail(_ failure: DownloadFileFailure) {
        let (finish, observer) = self.state.withLock { state in
            state.failure = failure
            state.queue = WriteQueue()
            state.isWriting = false
            defer { (state.finish, state.observer) = (nil, nil) }
            return (state.finish, state.observer)
        }
        if let finish { finish(.failure(failure)) } else { observer?(.failed(failure)) }
    }
}
