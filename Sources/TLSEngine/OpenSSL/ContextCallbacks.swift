import COpenSSL

// What OpenSSL calls while a connection is inside one of its functions. Each finds its connection and asks it.

private func connection(of ssl: OpaquePointer?) -> SecureConnection? {
    guard let ssl = unsafe ssl, let pointer = unsafe SSL_get_ex_data(ssl, 0) else { return nil }
    return unsafe Unmanaged<SecureConnection>.fromOpaque(pointer).takeUnretainedValue()
}

func judgePeer(_ store: OpaquePointer?, _: UnsafeMutableRawPointer?) -> Int32 {
    let ssl = unsafe X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx())
    guard let store = unsafe store, let connection = unsafe connection(of: OpaquePointer(ssl)) else { return 0 }
    return unsafe connection.judgePeer(store) ? 1 : 0
}

/// Answers 1 to go on, 0 to fail, -1 to be asked again later.
func chooseIdentity(_ ssl: OpaquePointer?, _: UnsafeMutableRawPointer?) -> Int32 {
    guard let connection = unsafe connection(of: ssl) else { return 0 }
    return connection.chooseIdentity()
}

func judgeServerName(
    _ ssl: OpaquePointer?, _ alert: UnsafeMutablePointer<Int32>?, _: UnsafeMutableRawPointer?
) -> Int32 {
    guard let connection = unsafe connection(of: ssl), let name = connection.requestedName else {
        return SSL_TLSEXT_ERR_NOACK
    }
    guard connection.material.configuration.refusesUnknownServerNames,
        connection.material.identities(for: name).isEmpty
    else { return SSL_TLSEXT_ERR_OK }
    unsafe alert?.pointee = SSL_AD_UNRECOGNIZED_NAME
    return SSL_TLSEXT_ERR_ALERT_FATAL
}

func chooseProtocol(
    _ ssl: OpaquePointer?, _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
    _ chosenCount: UnsafeMutablePointer<UInt8>?, _ offered: UnsafePointer<UInt8>?, _ offeredCount: UInt32,
    _: UnsafeMutableRawPointer?
) -> Int32 {
    guard let connection = unsafe connection(of: ssl), let offered = unsafe offered else { return SSL_TLSEXT_ERR_NOACK }
    let list = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(start: offered, count: Int(offeredCount)))
    guard let range = ApplicationProtocols.choose(from: list, wanted: connection.material.wantedProtocols) else {
        return SSL_TLSEXT_ERR_ALERT_FATAL
    }
    unsafe chosen?.pointee = offered + range.lowerBound
    unsafe chosenCount?.pointee = UInt8(truncatingIfNeeded: range.count)
    return SSL_TLSEXT_ERR_OK
}

/// Answers whether the reference was taken over.
func keepSession(_ ssl: OpaquePointer?, _ session: OpaquePointer?) -> Int32 {
    guard let session = unsafe session, let connection = unsafe connection(of: ssl) else { return 0 }
    return unsafe connection.keep(session) ? 1 : 0
}

func logKey(_ ssl: OpaquePointer?, _ line: UnsafePointer<CChar>?) {
    guard let line = unsafe line, let connection = unsafe connection(of: ssl) else { return }
    unsafe connection.dialogue?.secrets.noteKey(line)
    connection.material.keyLog?.write(unsafe String(cString: line))
}

/// Called for what is written and read, in parts: headers of records, and each message of the handshake behind them.
func noteMessage(
    _ written: Int32, _ version: Int32, _ kind: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, _ ssl: OpaquePointer?,
    _: UnsafeMutableRawPointer?
) {
    guard kind == SSL3_RT_HANDSHAKE || (kind == SSL3_RT_HEADER && written == 1),
        let connection = unsafe connection(of: ssl)
    else { return }
    guard let dialogue = connection.dialogue else {
        if written == 0 { connection.noteMessageReceived() }
        return
    }
    guard written == 1 else { return }
    if kind == SSL3_RT_HEADER {
        dialogue.secrets.noteRecord()
    } else if let first = unsafe bytes?.load(as: UInt8.self), first == SSL3_MT_FINISHED {
        dialogue.secrets.noteFinished()
    }
}

func noteProgress(_ ssl: OpaquePointer?, _ event: Int32, _ value: Int32) {
    guard event & SSL_CB_ALERT != 0, let connection = unsafe connection(of: ssl) else { return }
    let code = UInt8(truncatingIfNeeded: value)
    // These end nothing, or one direction only; below TLS 1.3 a warning ends nothing either.
    let harmless = [SSL_AD_CLOSE_NOTIFY, SSL_AD_USER_CANCELLED, SSL_AD_NO_RENEGOTIATION].contains(Int32(code))
    let warning = unsafe value >> 8 == SSL3_AL_WARNING && SSL_version(ssl) != TLS1_3_VERSION
    guard !harmless, !warning else { return }
    connection.alert = TLSAlert(code: code, origin: event & SSL_CB_READ != 0 ? .peer : .ours)
}
