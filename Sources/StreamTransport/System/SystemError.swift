import CLinux

/// An error number that a system call gave, with its name and text.
package struct SystemError: Error, Hashable, Sendable {
    package let number: Int32

    @inlinable
    package init(_ number: Int32) {
        self.number = number
    }
}

extension SystemError {
    /// Error of the call that just failed on this thread.
    static var last: SystemError {
        SystemError(sluice_errno())
    }

    package static let wouldBlock = SystemError(EAGAIN)
    package static let reset = SystemError(ECONNRESET)
    package static let brokenPipe = SystemError(EPIPE)
    package static let timedOut = SystemError(ETIMEDOUT)
    package static let refused = SystemError(ECONNREFUSED)
    package static let hostUnreachable = SystemError(EHOSTUNREACH)
    package static let networkUnreachable = SystemError(ENETUNREACH)
    package static let networkDown = SystemError(ENETDOWN)
    package static let addressInUse = SystemError(EADDRINUSE)
    package static let interrupted = SystemError(EINTR)
    package static let processDescriptorsExhausted = SystemError(EMFILE)
    package static let systemDescriptorsExhausted = SystemError(ENFILE)
    package static let noMemory = SystemError(ENOMEM)
    package static let noBuffers = SystemError(ENOBUFS)
    package static let notConnected = SystemError(ENOTCONN)
    package static let noSuchFile = SystemError(ENOENT)
    package static let nameTooLong = SystemError(ENAMETOOLONG)
    package static let badDescriptor = SystemError(EBADF)
    package static let fileExists = SystemError(EEXIST)
    package static let accessDenied = SystemError(EACCES)
    package static let addressNotAvailable = SystemError(EADDRNOTAVAIL)
    package static let wrongSocketType = SystemError(EPROTOTYPE)
    package static let notSocket = SystemError(ENOTSOCK)
    package static let notDirectory = SystemError(ENOTDIR)
    /// A chain of links that is too long.
    package static let tooManyLinks = SystemError(ELOOP)
    /// A name that leads out of the folder in which it was to be found.
    package static let leadsOut = SystemError(EXDEV)
    /// A FIFO in place of a file.
    package static let fifo = SystemError(ESPIPE)
    /// A socket file that was opened, or a device that is not there.
    package static let noSuchDevice = SystemError(ENXIO)

    /// A connection cannot be taken now, but may be once others have closed.
    package var isExhaustion: Bool {
        switch self {
        case .processDescriptorsExhausted, .systemDescriptorsExhausted, .noMemory, .noBuffers: true
        default: false
        }
    }
}

extension SystemError: CustomStringConvertible {
    /// The system's text, such as "Connection refused"; for the process's own lack of descriptors, the figures.
    package var description: String {
        if self == .processDescriptorsExhausted { return DescriptorReserve.process.description }
        if self == .fifo { return "is not a file" }
        return unsafe String(cString: strerror(self.number))
    }
}
