//! Calls without a generated client. The message is bytes that many calls share.

use bytes::{BufMut, Bytes, BytesMut};
use function_proto::v1::{RequestMeta, RunFunctionRequest, RunFunctionResponse};
use http_body_util::{BodyExt, Full};
use prost::Message as _;
use tokio::sync::mpsc;
use tonic::body::Body;
use tonic::codegen::http::{self, HeaderMap};
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_prost::ProstCodec;
use tower::{Service as _, ServiceExt as _};

pub const RUN_FUNCTION: &str = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";

/// A request of exactly `size` bytes, nearly all of them one string.
pub fn request_of(size: usize) -> Bytes {
    let with_tag = |length| RunFunctionRequest {
        meta: Some(RequestMeta { tag: "x".repeat(length), ..RequestMeta::default() }),
        ..RunFunctionRequest::default()
    };
    let overhead = with_tag(size - 100).encoded_len() - (size - 100);
    let message = with_tag(size - overhead).encode_to_vec();
    assert_eq!(message.len(), size);
    message.into()
}

/// A message in gRPC's framing.
pub fn framed(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(5 + message.len());
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap());
    frame.put(message);
    frame.freeze()
}

/// Sends one framed message and returns the status code.
pub async fn send(mut channel: Channel, frame: Bytes) -> Code {
    let request = http::Request::post(format!("http://function{RUN_FUNCTION}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::new(Full::new(frame)))
        .unwrap();
    let response = channel.ready().await.unwrap().call(request).await.unwrap();
    let code = |headers: &HeaderMap| Some(Code::from_bytes(headers.get("grpc-status")?.as_bytes()));
    if let Some(code) = code(response.headers()) {
        return code;
    }
    let body = response.into_body().collect().await.unwrap();
    code(body.trailers().unwrap()).unwrap()
}

/// A call with an open request. It is in flight until the sender is dropped.
pub struct Unfinished {
    pub end: mpsc::Sender<RunFunctionRequest>,
    pub answer: tokio::task::JoinHandle<Result<RunFunctionResponse, Status>>,
}

/// Starts a call.
pub async fn begin(channel: Channel, request: RunFunctionRequest) -> Unfinished {
    let (end, messages) = mpsc::channel(1);
    end.send(request).await.unwrap();
    let answer = tokio::spawn(async move {
        let mut client = tonic::client::Grpc::new(channel);
        client.ready().await.unwrap();
        let request = tonic::Request::new(ReceiverStream::new(messages));
        let path = http::uri::PathAndQuery::from_static(RUN_FUNCTION);
        let codec = ProstCodec::<RunFunctionRequest, RunFunctionResponse>::default();
        client.client_streaming(request, path, codec).await.map(tonic::Response::into_inner)
    });
    Unfinished { end, answer }
}

/// GET /metrics.
pub async fn scrape(address: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut connection = tokio::net::TcpStream::connect(address).await.unwrap();
    connection
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut text = String::new();
    connection.read_to_string(&mut text).await.unwrap();
    text
}
