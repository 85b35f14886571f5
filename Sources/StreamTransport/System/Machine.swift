import CLinux

/// What the machine offers this process.
package enum Machine {
    /// Processors that this process may run on, at least 1.
    package static var cores: Int {
        Int(sluice_usable_cores())
    }

    /// 64 bits from the kernel's generator, for seeds and keys.
    package static func entropy() -> UInt64 {
        sluice_random()
    }
}

extension Descriptor {
    /// A second descriptor for the same socket, so that several loops can watch one listener.
    package func duplicated() -> Result<Descriptor, SystemError> {
        let number = sluice_duplicate(self.number)
        return number >= 0 ? .success(Descriptor(number)) : .failure(.last)
    }

    package func close() {
        _ = CLinux.close(self.number)
    }
}
