# Serves one exported file to visitors: result pages only, read-only.
#   docker build -t liob .
#   docker run -p 8501:8501 -v "$PWD/liob-RUN.duckdb:/results.duckdb:ro" -e LIOB_SHARE=/results.duckdb liob
# Without LIOB_SHARE it serves the sample that ships with LIOB. In a Space, set `app_port: 8501`.
FROM python:3.12-slim
RUN useradd --create-home --uid 1000 liob
WORKDIR /app
COPY requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt
COPY . .
ENV LIOB_SHARE=data/sample.duckdb \
    LIOB_DATA_DIR=/tmp/liob \
    PYTHONDONTWRITEBYTECODE=1 \
    STREAMLIT_CLIENT_SHOW_ERROR_DETAILS=none \
    STREAMLIT_SERVER_FILE_WATCHER_TYPE=none \
    STREAMLIT_SERVER_HEADLESS=true
USER liob
EXPOSE 8501
HEALTHCHECK CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/_stcore/health')"]
CMD ["streamlit", "run", "streamlit_app.py", "--server.address=0.0.0.0", "--server.port=8501"]
