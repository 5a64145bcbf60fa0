// TransferCallbacks: the C callbacks of a running transfer.

import CCurl
import Platform

/// curl's callbacks. The context is the transfer, which the loop retains as long as curl has its
/// handle.
enum TransferCallbacks {
  static let body: curl_write_callback = { bytes, size, count, context in
    guard let context else { return 0 }
    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
    return switch transfer.receiveBody(piece) {
    case .taken: piece.count
    case .wait: Int(CURL_WRITEFUNC_PAUSE)
    case .abort: Int(CURL_WRITEFUNC_ERROR)
    }
  }

  static let header: curl_write_callback = { bytes, size, count, context in
    guard let context else { return 0 }
    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
    return transfer.receiveHeader(line) ? line.count : Int(CURL_WRITEFUNC_ERROR)
  }

  static let openSocket: curl_opensocket_callback = { context, _, address in
    guard let context, let address else { return CURL_SOCKET_BAD }
    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    return transfer.openSocket(address)
  }

  /// Called when curl has a new or reused connection and is about to send the request.
  static let request: curl_prereq_callback = { context, address, _, _, _ in
    guard let context else { return CURL_PREREQFUNC_ABORT }
    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    return transfer.sendsRequest(to: address.flatMap { IPAddress(String(cString: $0)) })
      ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
  }
}
