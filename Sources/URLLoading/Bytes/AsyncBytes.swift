import Foundation

extension URLSession {
    /// The content of a response, byte by byte as it is read: no more than 1 MiB comes in advance. Whoever stops reading
    /// before the end cancels the task. To be read once.
    public struct AsyncBytes: AsyncSequence, Sendable {
        public typealias Element = UInt8

        public struct AsyncIterator: AsyncIteratorProtocol {
            @usableFromInline var bytes: ByteIterator

            @inlinable
            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
                try await self.bytes.next(isolation: actor)
            }
        }

        /// Brings the bytes.
        public let task: URLSessionDataTask
        let consumer: ByteConsumer

        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(bytes: ByteIterator(self.makeByteReader()))
        }
    }

    /// Loads the request, and returns when its response is there: the content comes as it is read.
    ///
    /// Cancelling the Swift task cancels the load, also while the content is read. A delegate that is given here is
    /// asked before the session's, and hears nothing of the response and the content.
    public func bytes(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, URLResponse) {
        let waiting = AwaitedTask()
        let window = ByteWindow(waiting)
        let channel = ByteChannel(wanted: { window.wanted() }, abandoned: { waiting.cancel() })
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let answer = OneShotHandler<Result<Carried<(AsyncBytes, URLResponse)>, any Error>> {
                    continuation.resume(with: $0.map(\.value))
                }
                let task = self.dataTask(
                    request,
                    consumer: .bytes(channel) { result in
                        guard let task = waiting.task as? URLSessionDataTask else {
                            return answer(.failure(URLError(.cancelled)))
                        }
                        answer(result.map { Carried((AsyncBytes(task: task, consumer: ByteConsumer(channel)), $0)) })
                    }, delegate: delegate)
                waiting.start(task)
            }
        } onCancel: {
            waiting.cancel()
        }
    }

    /// As `bytes(for:delegate:)`, by GET.
    public func bytes(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, URLResponse) {
        try await self.bytes(for: URLRequest(url: url), delegate: delegate)
    }
}

extension URLSession.AsyncBytes: ByteRunSequence {
    package func makeByteReader() -> ByteReader { ByteReader(self.consumer) }
}

extension URL {
    /// The content of the resource, byte by byte, loaded by the shared session when it is first read.
    public struct AsyncBytes: AsyncSequence, Sendable {
        public typealias Element = UInt8

        public struct AsyncIterator: AsyncIteratorProtocol {
            let url: URL
            var bytes: URLSession.AsyncBytes.AsyncIterator?

            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
                if self.bytes == nil {
                    self.bytes = try await URLSession.shared.bytes(from: self.url).0.makeAsyncIterator()
                }
                return try await self.bytes?.next(isolation: actor)
            }
        }

        let url: URL

        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(url: self.url) }
    }

    /// The content of what the URL stands for.
    public var resourceBytes: AsyncBytes { AsyncBytes(url: self) }

    /// The lines of what the URL stands for, as `AsyncSequence.lines` makes them.
    public var lines: AsyncLineSequence<AsyncBytes> { self.resourceBytes.lines }
}

/// A sequence of bytes that come from a channel, so that they can be had by the run where that is faster.
package protocol ByteRunSequence {
    /// As `makeAsyncIterator`.
    func makeByteReader() -> ByteReader
}
